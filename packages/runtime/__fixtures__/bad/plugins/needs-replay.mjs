import { definePlugin, Replay, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'needs-replay',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'needs-replay', keys: z.strictObject({}) }],
  requires: { replay: Replay },
  create: () => ({ dispose: async () => undefined }),
})
