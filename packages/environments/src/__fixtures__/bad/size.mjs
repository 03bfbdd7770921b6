import { defineEnvironment } from '@trilithon/environments'
import { z } from 'zod'
export default defineEnvironment({ name: "x", args: z.strictObject({}), dataset: () => ({ size: { train: 1, eval: 1 }, task: () => ({}) }), episode: async () => 1, score: () => 1, dataset: () => ({}) })
