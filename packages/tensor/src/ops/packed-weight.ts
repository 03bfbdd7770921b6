import { gemmPack, groupedGemmPack } from '@trilithon/native'
import { refuse } from '../refuse.ts'
import { atomic, keep } from '../scope.ts'
import { describeShape, empty, type Tensor } from '../tensor.ts'

/** Columns of a panel of a packed weight. */
const panelColumns = 32

/**
 * A weight laid out for many products: the bits of the result stay the same. It goes stale when the weight is overwritten, and is then refused.
 *
 * No scope frees it: dispose it.
 */
export interface PackedWeight {
  readonly forward: Tensor
  /** For the gradient of the input, where it was asked for. */
  readonly backward: Tensor | null
  /** What it was packed from. */
  readonly weight: Tensor
  readonly writes: number
  dispose(): void
}

/** Lays out a weight, [n, k] or of experts [experts, n, k], for the forward, and for the backward where `forBackward` is set. */
export function packWeight(weight: Tensor, forBackward = false): PackedWeight {
  return atomic(() => {
    const forward = pack(weight, false)
    const backward = forBackward ? pack(weight, true) : null
    keep([forward, backward])
    const dispose = () => {
      forward.dispose()
      backward?.dispose()
    }
    return { forward, backward, weight, writes: weight.writes, dispose }
  })
}

function pack(weight: Tensor, backward: boolean): Tensor {
  const [n, k] = [weight.dim(-2), weight.dim(-1)]
  const [columns, depth] = backward ? [k, n] : [n, k]
  const packed = empty(weight.dtype, [...weight.shape.slice(0, -2), Math.ceil(columns / panelColumns), depth, panelColumns])
  const call = weight.rank === 3 ? groupedGemmPack : gemmPack
  call({ weight: weight.handle, packed: packed.handle, backward })
  return packed
}

/** The two arguments of a native product, of which one is left out. Refuses a layout of another weight or of earlier elements. */
export function weightArguments(op: string, weight: Tensor, packed: PackedWeight | null, direction: 'forward' | 'backward') {
  if (packed !== null && packed.weight !== weight)
    refuse(op, 'packed', 'the layout of this weight', `that of another, ${describeShape(packed.weight)}`)
  if (packed !== null && packed.writes !== weight.writes)
    refuse(op, 'packed', 'a layout of the weight as it is', `one that is ${weight.writes - packed.writes} writes behind`)
  const panels = packed?.[direction] ?? null
  return panels === null ? { weight: weight.handle } : { packed: panels.handle }
}
