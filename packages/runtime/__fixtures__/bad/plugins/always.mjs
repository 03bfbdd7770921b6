import { definePlugin, Router } from '@trilithon/core'

export default definePlugin({
  name: 'always',
  fills: Router,
  claims: [],
  
  create: () => ({ dispose: async () => undefined }),
})
