import type { ParameterSpec } from '@trilithon/core'

/** A model as small as it gets with each kind of parameter, one of them out of the order of its unit. */
export const fakeParameters: readonly ParameterSpec[] = [
  { name: 'layers.0.attention', shape: [8, 8], kind: 'dense', unit: 'layers.0' },
  { name: 'embed', shape: [32, 8], kind: 'dense', unit: 'embedding' },
  { name: 'layers.0.experts', shape: [4, 8, 8], kind: 'expert', unit: 'layers.0' },
  { name: 'layers.0.bias', shape: [4], kind: 'buffer', unit: 'layers.0' },
]
