import { definePlugin, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'throwing-check',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'throwing-check', keys: z.strictObject({}) }],
  check() {
    throw new Error('this check fails itself')
  },
  create: () => ({ dispose: async () => undefined }),
})
