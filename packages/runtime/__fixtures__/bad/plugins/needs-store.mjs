import { definePlugin, KVStore, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'needs-store',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'needs-store', keys: z.strictObject({}) }],
  requires: { store: KVStore },
  create: () => ({ dispose: async () => undefined }),
})
