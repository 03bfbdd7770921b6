/** Storage formats to and from f32. No gradient flows through them: a format is chosen around an op, not inside one. */
import { castsDequantize, castsNarrow, castsQuantize, castsWiden, type DType } from '@trilithon/native'
import { atomic } from '../scope.ts'
import { refuseRecording } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'

export type SmallFormat = Extract<DType, 'bf16' | 'f16' | 'e4m3' | 'e5m2'>

/** x in a smaller format, rounded to nearest even; 8-bit formats saturate. */
export function narrow(x: Tensor, dtype: SmallFormat): Tensor {
  refuseRecording('narrow', 'x', x)
  return atomic(() => {
    const y = empty(dtype, x.shape)
    castsNarrow({ x: x.handle, y: y.handle })
    return y
  })
}

/** x as f32, exactly. */
export function widen(x: Tensor): Tensor {
  return atomic(() => {
    const y = empty('f32', x.shape)
    castsWiden({ x: x.handle, y: y.handle })
    return y
  })
}

/** Columns of a block that shares a scale. */
export const scaleBlockColumns = 128

export interface QuantiseOptions {
  /** Rows of a block: 1 for activations, 128 for weights. */
  readonly blockRows: number
  /** The largest magnitude of a block is taken to be at least this. */
  readonly amaxFloor: number
  /** Scales are raised to the next power of two. */
  readonly isPowerOfTwo: boolean
}

/** A matrix in e4m3 with a scale per block. */
export interface BlockCodes {
  readonly codes: Tensor
  readonly scales: Tensor
}

/** Sizes of the scales of a matrix. */
export function scaleShape(rows: number, columns: number, blockRows: number): readonly [number, number] {
  return [Math.ceil(rows / blockRows), Math.ceil(columns / scaleBlockColumns)]
}

/** e4m3 codes of x, [rows, columns], and a scale per block of `blockRows` x 128; into `target` where one is given. */
export function quantiseBlocks(x: Tensor, options: QuantiseOptions, target?: BlockCodes): BlockCodes {
  refuseRecording('quantiseBlocks', 'x', x)
  const { blockRows, amaxFloor, isPowerOfTwo } = options
  return atomic(() => {
    const codes = target?.codes ?? empty('e4m3', x.shape)
    const scales = target?.scales ?? empty('f32', scaleShape(x.dim(0), x.dim(1), blockRows))
    castsQuantize({ x: x.handle, codes: codes.handle, scales: scales.handle, blockRows, amaxFloor, powerOfTwo: isPowerOfTwo })
    return { codes, scales }
  })
}

/** Codes times the scale of their block; into `target` where one is given. */
export function dequantiseBlocks({ codes, scales }: BlockCodes, blockRows: number, target?: Tensor): Tensor {
  return atomic(() => {
    const y = target ?? empty('f32', codes.shape)
    castsDequantize({ codes: codes.handle, scales: scales.handle, y: y.handle, blockRows })
    return y
  })
}
