import { definePlugin, KVStore, Replay, Router } from '@trilithon/core'
import { z } from 'zod'
import { LimitedRouter } from '../limited-router.ts'

/** A plugin from outside that uses all of a definition. */
export default definePlugin({
  name: '@acme/whole-router',
  fills: Router,
  runsIn: ['orchestrator'],
  claims: [
    {
      at: 'orchestrator.router',
      type: '@acme/whole-router',
      keys: z.strictObject({
        window_ms: z.number().positive().describe('How long a report counts.'),
        headers: z.record(z.string(), z.string()).default({}).describe('Passed through to the gateway.'),
      }),
    },
    {
      at: 'inference',
      keys: z.strictObject({ route_by_load: z.boolean().default(false).describe('Whether load counts.') }),
      inactive: { route_by_load: false },
    },
  ],
  requires: { store: KVStore },
  optional: { replay: Replay },
  capabilities: { least_loaded: false, modes: ['a', 'b'] },
  kernels: ['kv-block-copy'],
  *check({ config, run, peer }) {
    if (peer(Replay)?.['carries_routed_experts'] !== true) yield 'It wants a replay that carries routed experts.'
    if (run.numericsProfile !== 'bf16') yield 'It wants bf16.'
    if (config['orchestrator.router']?.window_ms === 13) yield { message: 'Not 13.', hint: 'Take 12.' }
  },
  create({ needs }) {
    if (typeof needs.store.lookup !== 'function') throw new Error('no store')
    return new LimitedRouter()
  },
})
