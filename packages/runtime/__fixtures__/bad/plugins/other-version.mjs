import { definePlugin, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'other',
  fills: { ...Router, version: 9, key: Symbol.for('@trilithon/seam/router@9') },
  claims: [{ at: 'orchestrator.router', type: 'other', keys: z.strictObject({}) }],
  
  create: () => ({ dispose: async () => undefined }),
})
