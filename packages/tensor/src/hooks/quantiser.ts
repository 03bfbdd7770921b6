/** Quantiser handles: the operational half of `Precision`. */
import type { Storage } from '@trilithon/core'
import { dequantiseBlocks, narrow, type QuantiseOptions, quantiseBlocks, scaleBlockColumns, scaleShape, widen } from '../ops/casts.ts'
import { refuse } from '../refuse.ts'
import { atomic } from '../scope.ts'
import { detach, refuseRecording } from '../tape.ts'
import { describeShape, empty, type Tensor, viewOf } from '../tensor.ts'

/** A tensor as it is stored. */
export interface Quantised {
  readonly codes: Tensor
  /** One per block of a block-scaled format: of a matrix [rows of blocks, blocks side by side], of a stack of matrices one such for each. */
  readonly scales: Tensor | null
}

/**
 * Stores f32 tensors in one format. Trainer and publisher use the same handle, so what is served is what was trained with.
 *
 * Contract:
 * - N1 `quantise` depends on the elements of its argument alone: equal bits in, equal bits out.
 * - N2 `dequantise` of a quantised tensor is f32, with the shape of the original.
 * - N3 A plain format is a fixed point: quantising what was dequantised gives the same codes. float32 changes no bit.
 * - N4 Finite elements give finite results and scales above 0; a block of zeros gives zeros.
 * - N5 A format that cannot be computed here is refused when the handle is made, in words.
 * - N6 A tensor that is recorded is refused: detach it.
 */
export interface Quantiser {
  readonly storage: Storage
  quantise(x: Tensor): Quantised
  dequantise(quantised: Quantised): Tensor
}

/** DeepGEMM's floor for weights, as prime-rl publishes them: 1e-12 on the scale. */
const weightOptions = { amaxFloor: 4.48e-10, isPowerOfTwo: false }

/** The handle for a storage format. `options` are for block-scaled formats. */
export function createQuantiser(storage: Storage, options: Partial<Omit<QuantiseOptions, 'blockRows'>> = {}): Quantiser {
  const { dtype, scaleBlock } = storage
  if (dtype !== 'float8_e4m3' && scaleBlock !== undefined)
    refuse('createQuantiser', 'storage.scaleBlock', `none for ${dtype}`, scaleBlock.join(' x '), 'KERNEL_UNAVAILABLE')
  switch (dtype) {
    case 'float32':
      return {
        storage,
        quantise: (x) => ({ codes: detached(x), scales: null }),
        dequantise: ({ codes }) => detach(codes),
      }
    case 'bfloat16':
      return {
        storage,
        quantise: (x) => ({ codes: narrow(x, 'bf16'), scales: null }),
        dequantise: ({ codes }) => widen(codes),
      }
    case 'float8_e4m3': {
      if (scaleBlock === undefined || scaleBlock[1] !== scaleBlockColumns || ![1, scaleBlockColumns].includes(scaleBlock[0]))
        refuse('createQuantiser', 'storage.scaleBlock', '1 x 128 or 128 x 128', scaleBlock?.join(' x ') ?? 'none', 'KERNEL_UNAVAILABLE')
      return blockQuantiser(storage, { ...weightOptions, ...options, blockRows: scaleBlock[0] })
    }
  }
}

function detached(x: Tensor): Tensor {
  refuseRecording('quantise', 'x', x)
  if (x.dtype !== 'f32') refuse('quantise', 'x', 'dtype f32', describeShape(x))
  return detach(x)
}

/** Of a stack of matrices [count, rows, columns] each is quantised alone, so that no block holds rows of two. */
function blockQuantiser(storage: Storage, options: QuantiseOptions): Quantiser {
  const { blockRows } = options
  return {
    storage,
    quantise(x) {
      if (x.rank !== 2 && x.rank !== 3) refuse('quantise', 'x', '[rows, columns] or [count, rows, columns]', describeShape(x))
      return atomic(() => {
        const codes = empty('e4m3', x.shape)
        const scales = empty('f32', [...x.shape.slice(0, -2), ...scaleShape(x.dim(-2), x.dim(-1), blockRows)])
        for (let index = 0; index < countOf(x); index++)
          quantiseBlocks(matrixOf(x, index), options, { codes: matrixOf(codes, index), scales: matrixOf(scales, index) })
        return { codes, scales }
      })
    },
    dequantise({ codes, scales }) {
      if (scales === null) refuse('dequantise', 'scales', 'a tensor of scales', 'null')
      return atomic(() => {
        const x = empty('f32', codes.shape)
        for (let index = 0; index < countOf(codes); index++)
          dequantiseBlocks({ codes: matrixOf(codes, index), scales: matrixOf(scales, index) }, blockRows, matrixOf(x, index))
        return x
      })
    },
  }
}

const countOf = (stack: Tensor) => (stack.rank === 3 ? stack.dim(0) : 1)

function matrixOf(stack: Tensor, index: number): Tensor {
  return stack.rank === 3 ? viewOf(stack, stack.shape.slice(1), stack.strides.slice(1), index * (stack.strides[0] as number)) : stack
}
