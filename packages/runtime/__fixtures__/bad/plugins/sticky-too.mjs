import { definePlugin, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'sticky-too',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'sticky', keys: z.strictObject({}) }],
  
  create: () => ({ dispose: async () => undefined }),
})
