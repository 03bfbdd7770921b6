import assert from 'node:assert/strict'
import { coreSeams } from '@trilithon/core'
import { describePlugin } from '@trilithon/testing'
import { describe, it } from 'vitest'
import { builtinPlugins } from './builtin-plugins.ts'

for (const plugin of builtinPlugins)
  describePlugin(plugin, {
    packageRoot: new URL('..', import.meta.url),
    config: { 'inference.kv_cache_offload': { cpu: { num_bytes: 1 << 20 } } },
  })

describe('built-in plugins', () => {
  it('fill every seam of core once, in its order', () => {
    assert.deepEqual(
      builtinPlugins.map(({ fills }) => fills),
      coreSeams,
    )
  })
})
