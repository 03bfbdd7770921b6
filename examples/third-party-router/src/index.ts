import { definePlugin, Router } from '@trilithon/core'
import { z } from 'zod'
import { RoundRobinRouter } from './round-robin-router.ts'

export { RoundRobinRouter }

const keys = z.strictObject({
  max_leases_per_worker: z
    .number()
    .int()
    .positive()
    .default(256)
    .describe('Requests that one worker may have at once; a request that finds every worker full waits.'),
})

/** Chosen by `[orchestrator.router] type = "@acme/round-robin-router"`. */
export default definePlugin({
  name: '@acme/round-robin-router',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: '@acme/round-robin-router', keys }],
  // None of the router's capabilities: turns of a session go anywhere, load is not looked at, and pairs are not served.
  capabilities: {},
  create: ({ config }) => new RoundRobinRouter((config['orchestrator.router'] ?? keys.parse({})).max_leases_per_worker),
})
