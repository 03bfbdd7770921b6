import { definePlugin, Replay, Router } from '@trilithon/core'

export default definePlugin({
  name: 'needs-router',
  fills: Replay,
  claims: [],
  requires: { router: Router },
  create: () => ({ dispose: async () => undefined }),
})
