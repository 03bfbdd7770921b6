import { defineEnvironment } from '@trilithon/environments'
import { z } from 'zod'
export default defineEnvironment({ name: '', scoring: 'both' })
