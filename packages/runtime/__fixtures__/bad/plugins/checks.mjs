import { definePlugin, Router } from '@trilithon/core'
import { z } from 'zod'

export default definePlugin({
  name: 'checks',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'checks', keys: z.strictObject({ weight: z.int().default(2) }) }],
  *check({ config }) {
    const { weight } = config['orchestrator.router']
    if (weight % 2 === 1) yield { message: `the weight ${weight} is odd`, path: 'orchestrator.router.weight', hint: 'Make it even.' }
  },
  create: () => ({ dispose: async () => undefined }),
})
