/** Rotary position embedding. */
import { ropeBackward, ropeForward, ropeTables } from '@trilithon/native'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, emptyLike, type Tensor } from '../tensor.ts'

/** Cosine and sine of every angle, [tokens, half] each: made once per batch, used by every layer. */
export interface RotaryTables {
  readonly cosines: Tensor
  readonly sines: Tensor
}

/** Tables of `positions` (i32 [tokens]) times `inverseFrequencies` ([half]); `scale` multiplies both (YaRN). */
export function rotaryTables(positions: Tensor, inverseFrequencies: Tensor, scale = 1): RotaryTables {
  return atomic(() => {
    const shape = [positions.dim(0), inverseFrequencies.dim(0)]
    const cosines = empty(inverseFrequencies.dtype, shape)
    const sines = empty(inverseFrequencies.dtype, shape)
    ropeTables({
      positions: positions.handle,
      inverseFrequencies: inverseFrequencies.handle,
      cosines: cosines.handle,
      sines: sines.handle,
      scale,
    })
    return { cosines, sines }
  })
}

/**
 * Turns the first 2 * half elements of each head by the angles of its token; the rest stays. x: [tokens, heads, width], of which tokens and heads may
 * have gaps. Pairs are (i, i + half), or (2i, 2i + 1) where `isInterleaved`.
 */
export function rope(x: Tensor, { cosines, sines }: RotaryTables, isInterleaved: boolean): Tensor {
  return atomic(() => {
    const y = emptyLike(x)
    const tables = { cosines: cosines.handle, sines: sines.handle, interleaved: isInterleaved }
    ropeForward({ x: x.handle, y: y.handle, ...tables })
    recorder(x)?.add('rope', [x, cosines, sines], [y], [cosines, sines], (step) => {
      const dX = step.freshOrNull(0)
      if (dX === null) return
      ropeBackward({
        dY: step.gradient(0).handle,
        cosines: step.held(0).handle,
        sines: step.held(1).handle,
        dX: dX.handle,
        interleaved: isInterleaved,
      })
    })
    return y
  })
}
