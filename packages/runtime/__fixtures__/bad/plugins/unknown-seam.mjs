import { definePlugin, Router } from '@trilithon/core'

export default definePlugin({
  name: 'unknown-seam',
  fills: { ...Router, id: 'soul' },
  claims: [],
  
  create: () => ({ dispose: async () => undefined }),
})
