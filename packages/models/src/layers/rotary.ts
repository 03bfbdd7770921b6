import { fromArray, type RotaryTables, rotaryTables, type Tensor } from '@trilithon/tensor'
import type { RopeConfig } from '../config/rope-config.ts'

/** Cosines and sines for the positions of a forward pass, used by all its layers. */
export function rotaryTablesOf({ theta, width }: RopeConfig, positions: Tensor, dtype: 'f32' | 'f64'): RotaryTables {
  const half = width / 2
  const frequencies = Float64Array.from({ length: half }, (_, index) => theta ** (-index / half))
  return rotaryTables(positions, fromArray(dtype, [half], dtype === 'f64' ? frequencies : Float32Array.from(frequencies)))
}
