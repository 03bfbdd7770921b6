import { definePlugin, Parallelism } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'speed',
  fills: Parallelism,
  claims: [{ at: 'orchestrator', keys: z.strictObject({ speed: z.int().default(1) }), inactive: { speed: 1 } }],
  
  create: () => ({ dispose: async () => undefined }),
})
