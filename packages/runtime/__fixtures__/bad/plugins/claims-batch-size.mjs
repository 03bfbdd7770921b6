import { definePlugin, Replay } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'claims-batch-size',
  fills: Replay,
  claims: [{ at: 'orchestrator', keys: z.strictObject({ batch_size: z.int().default(1) }), inactive: { batch_size: 1 } }],
  
  create: () => ({ dispose: async () => undefined }),
})
