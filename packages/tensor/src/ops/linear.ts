/** Linear layers, with the weight as it is or packed. */
import { gemmBackwardWeight, gemmBackwardX, gemmForward, gemmPack } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { refuse } from '../refuse.ts'
import { atomic, keep } from '../scope.ts'
import { recorder } from '../tape.ts'
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

/** Lays out a weight, [n, k], for the forward, and for the backward where `forBackward` is set. */
export function packWeight(weight: Tensor, forBackward = false): PackedWeight {
  return atomic(() => {
    const [n, k] = [weight.dim(0), weight.dim(1)]
    const forward = pack(weight, n, k, false)
    const backward = forBackward ? pack(weight, k, n, true) : null
    keep([forward, backward])
    const dispose = () => {
      forward.dispose()
      backward?.dispose()
    }
    return { forward, backward, weight, writes: weight.writes, dispose }
  })
}

function pack(weight: Tensor, columns: number, depth: number, backward: boolean): Tensor {
  const packed = empty(weight.dtype, [Math.ceil(columns / panelColumns), depth, panelColumns])
  gemmPack({ weight: weight.handle, packed: packed.handle, backward })
  return packed
}

export interface LinearOptions {
  /** [n]. */
  readonly bias?: Tensor | null
  /** Of this very weight. */
  readonly packed?: PackedWeight | null
}

/** y = x · weightᵀ + bias. x: [tokens, k], weight: [n, k], y: [tokens, n]. Rows of x and weight may have gaps. */
export function linear(x: Tensor, weight: Tensor, { bias = null, packed = null }: LinearOptions = {}): Tensor {
  if (packed !== null) checkPacked(packed, weight)
  return atomic(() => {
    const y = empty(x.dtype, [x.dim(0), weight.dim(0)])
    const panels = packed?.forward ?? null
    gemmForward({
      x: x.handle,
      weight: panels === null ? weight.handle : null,
      packed: panels?.handle,
      bias: bias?.handle,
      y: y.handle,
      accumulate: false,
    })
    recorder(x, weight, bias)?.add('linear', [x, weight, bias], [y], [x, weight, bias], (step) => gradient(step, packed))
    return y
  })
}

function gradient(step: BackwardStep, packed: PackedWeight | null): void {
  const [x, weight, bias] = [step.held(0), step.held(1), step.heldOrNull(2)]
  const dY = step.gradient(0).handle
  if (step.needs(0)) {
    const { tensors, accumulate } = step.into([0], [x])
    const panels = packed?.backward ?? null
    gemmBackwardX({
      dY,
      weight: panels === null ? weight.handle : null,
      packed: panels?.handle,
      dX: (tensors[0] as Tensor).handle,
      accumulate,
    })
  }
  if (step.needs(1) || step.needs(2)) {
    const { tensors, accumulate } = bias === null ? step.into([1], [weight]) : step.into([1, 2], [weight, bias])
    gemmBackwardWeight({ dY, x: x.handle, dWeight: (tensors[0] as Tensor).handle, dBias: tensors[1]?.handle, accumulate })
  }
}

function checkPacked(packed: PackedWeight, weight: Tensor): void {
  if (packed.weight !== weight) refuse('linear', 'packed', 'the layout of this weight', `that of another, ${describeShape(packed.weight)}`)
  if (packed.writes !== weight.writes)
    refuse('linear', 'packed', 'a layout of the weight as it is', `one that is ${weight.writes - packed.writes} writes behind`)
}
