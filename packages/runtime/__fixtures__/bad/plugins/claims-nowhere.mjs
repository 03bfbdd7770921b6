import { definePlugin, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'claims-nowhere',
  fills: Router,
  claims: [
    { at: 'orchestrator.router', type: 'nowhere', keys: z.strictObject({}) },
    { at: 'orchestrator.nowhere', type: 'nowhere', keys: z.strictObject({}) },
  ],
  
  create: () => ({ dispose: async () => undefined }),
})
