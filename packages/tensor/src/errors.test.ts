import type { DType } from '@trilithon/native'
import { afterEach, expect, test } from 'vitest'
import {
  checkpoint,
  detach,
  embedding,
  empty,
  expertLinear,
  fromArray,
  fromShared,
  item,
  linear,
  liveTensors,
  noGrad,
  Parameter,
  record,
  reshape,
  rmsNorm,
  scope,
  sigmoidRouter,
  slice,
  softmaxRouter,
  split,
  toArray,
  write,
} from './index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

/** A refusal that names op, argument, expected and given. */
const refusal = (op: string, argument: string, expected?: unknown, given?: unknown, code = 'NATIVE_ARGUMENT_INVALID') =>
  expect.objectContaining({
    code,
    path: `${op}.${argument}`,
    details: {
      op,
      argument,
      expected: expected ?? expect.any(String),
      given: given ?? expect.any(String),
    },
  })

const zeros = (shape: readonly number[]) => fromArray('f32', shape, new Float32Array(shape.reduce((count, size) => count * size, 1)))

test('wrong shape, dtype, device and zero rows name op, argument, expected and given, and free what the op had made', () => {
  const x = zeros([2, 3])
  const weight = zeros([3])
  const cases: readonly [() => unknown, unknown][] = [
    [() => rmsNorm(x, zeros([2]), 0), refusal('rms-norm.forward', 'weight', 'shape [width 3 as in x]', '[2]')],
    [() => rmsNorm(weight, weight, 0), refusal('rms-norm.forward', 'x', 'shape [tokens, width]', '[3]')],
    [() => rmsNorm(x, empty('f64', [3]), 0), refusal('rms-norm.forward', 'weight', 'dtype f32, which x has', 'f64')],
    [() => rmsNorm(x, empty('i32', [3]), 0), refusal('rms-norm.forward', 'weight', 'dtype f32 or f64', 'i32')],
    [() => rmsNorm(empty('f32', [0, 3]), weight, 0), refusal('rms-norm.forward', 'x', '[tokens, width] with no zero among them', '[0, 3]')],
    [() => rmsNorm(x, weight, Number.NaN), refusal('rms-norm.forward', 'eps', 'a finite number')],
    [() => rmsNorm(slice(zeros([3, 2]), 1, 0, 1), weight, -1), refusal('rms-norm.forward', 'weight')],
    [() => empty('f32', [2], 'cuda'), refusal('empty', 'device', undefined, 'cuda', 'KERNEL_UNAVAILABLE')],
    [() => empty('f99' as DType, [2]), refusal('createTensor', 'dtype')],
    [() => empty('f32', [-1]), refusal('createTensor', 'shape')],
    [() => empty('f32', [2 ** 40, 2 ** 12]), expect.objectContaining({ code: 'NATIVE_MEMORY_EXHAUSTED' })],
  ]
  for (const [call, error] of cases) {
    const before = liveTensors().tensors
    expect(() => scope(call)).toThrowError(error as Error)
    expect(liveTensors().tensors).toBe(before)
  }
  const outside = liveTensors().tensors
  expect(() => rmsNorm(x, x, 0)).toThrowError(refusal('rms-norm.forward', 'weight'))
  expect(() => fromArray('f32', [2], [1])).toThrowError(refusal('writeTensor', 'array'))
  expect(liveTensors().tensors).toBe(outside)
  x.dispose()
  weight.dispose()
})

test('NaN where it decides, ids out of range and zero experts are refused; the process goes on', () => {
  scope(() => {
    const logits = fromArray('f32', [1, 3], [0, Number.NaN, 1])
    const ids = fromArray('i32', [1], [7])
    const cases: readonly [() => unknown, string][] = [
      [() => softmaxRouter(logits, { topK: 2, isNormalised: true }), 'moe-router.softmax-forward.logits'],
      [() => sigmoidRouter(logits, { topK: 2, isNormalised: true, scale: 1 }), 'moe-router.sigmoid-forward.logits'],
      [() => softmaxRouter(zeros([1, 3]), { topK: 4, isNormalised: true }), 'moe-router.softmax-forward.ids'],
      [() => embedding(ids, zeros([7, 2])), 'embedding.forward.ids'],
      [() => expertLinear(zeros([1, 2]), empty('f32', [0, 2, 2]), fromArray('i32', [1], [0])), 'grouped-gemm.forward.weight'],
      [() => linear(zeros([1, 2]), zeros([3, 4])), 'gemm.forward.weight'],
    ]
    for (const [call, path] of cases) {
      const before = liveTensors().tensors
      expect(() => scope(call)).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path }))
      expect(liveTensors().tensors).toBe(before)
    }
    expect([...toArray(rmsNorm(fromArray('f32', [2, 1], [Number.NaN, 2]), fromArray('f32', [1], [1]), 0))]).toEqual([Number.NaN, 1])
  })
})

test('views refuse what they cannot show', () => {
  scope(() => {
    const x = zeros([2, 6])
    expect(() => reshape(x, [5, 2])).toThrowError(refusal('reshape', 'shape', 'the 12 elements of f32 [2, 6]', '[5, 2]'))
    expect(() => reshape(x, [-1, -1])).toThrowError(refusal('reshape', 'shape'))
    expect(() => reshape(slice(x, 1, 0, 3), [6])).toThrowError(refusal('reshape', 'x', 'elements without gaps for shape [6]'))
    expect(() => slice(x, 1, 2, 7)).toThrowError(refusal('slice', 'begin, end', undefined, '2, 7'))
    expect(() => slice(x, 2, 0, 1)).toThrowError(refusal('dim', 'index', 'a dim of f32 [2, 6]', '2'))
    expect(() => split(x, 1, [2, 3])).toThrowError(refusal('split', 'sizes', undefined, '2 + 3 = 5'))
    expect(() => item(x)).toThrowError(refusal('item', 'tensor', 'one element', 'f32 [2, 6]'))
    expect(() => toArray(slice(x, 1, 0, 2))).toThrowError(refusal('readTensor', 'tensor', 'a contiguous tensor'))
    expect(reshape(slice(x, 1, 0, 4), [2, 2, -1]).strides).toEqual([6, 2, 1])
    expect(reshape(slice(x, 0, 1, 2), [6]).strides).toEqual([1])
    expect(reshape(slice(x, 1, 0, 1), [2]).strides).toEqual([6])
    expect(reshape(zeros([0, 4]), [2, 0]).elements).toBe(0)
  })
})

test('the border refuses detached buffers, other lengths, other element types and numbers for formats of bits', () => {
  scope(() => {
    const detached = new Float32Array(2)
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    const x = zeros([2])
    expect(() => write(x, detached)).toThrowError(refusal('writeTensor', 'array', 'a typed array with its buffer'))
    expect(() => fromArray('f32', [2], [1])).toThrowError(refusal('writeTensor', 'array', '8 bytes, as f32 [2] has', '4 bytes'))
    expect(() => write(x, new Int32Array(2))).toThrowError(refusal('writeTensor', 'array', 'a typed array for f32'))
    expect(() => fromArray('bf16', [1], [1])).toThrowError(refusal('fromArray', 'array', 'bit patterns in a typed array for bf16'))
    expect(() => fromShared('f32', [2], new Float32Array(2))).toThrowError(refusal('wrapShared', 'array'))
    const shared = new Float32Array(new SharedArrayBuffer(8))
    const view = fromShared('f32', [2], shared)
    write(view, [1, 2])
    expect([...shared]).toEqual([1, 2])
  })
})

test('use after dispose and double dispose are refused for ever', () => {
  const x = zeros([1, 2])
  const weight = zeros([2])
  x.dispose()
  const disposed = (op: string, argument: string) =>
    refusal(op, argument, 'a live tensor', 'a tensor that has been disposed', 'NATIVE_HANDLE_DISPOSED')
  expect(() => rmsNorm(x, weight, 0)).toThrowError(disposed('rms-norm.forward', 'x'))
  expect(() => x.dispose()).toThrowError(disposed('disposeTensor', 'tensor'))
  expect(() => reshape(x, [2])).toThrowError(disposed('viewTensor', 'source'))
  expect(String(x)).toBe('Tensor(f32 [1, 2], disposed)')
  weight.dispose()
})

test('the tape refuses what it cannot differentiate', () => {
  const weight = new Parameter({ name: 'weight', shape: [3] }).initialise(0)
  scope(() => {
    const x = zeros([1, 3])
    const gradient = zeros([1, 3])
    expect(() => record((tape) => tape.backward([{ output: rmsNorm(x, detach(weight.value), 1), gradient }]))).toThrowError(
      refusal('backward', 'output', 'a tensor that depends on a parameter'),
    )
    expect(() => record((tape) => tape.backward([{ output: noGrad(() => rmsNorm(x, weight.value, 1)), gradient }]))).toThrowError(
      refusal('backward', 'output'),
    )
    expect(() => record((tape) => tape.backward(rmsNorm(x, weight.value, 1)))).toThrowError(
      refusal('backward', 'loss', undefined, 'f32 [1, 3]'),
    )
    expect(() =>
      record((tape) => tape.backward([{ output: rmsNorm(x, weight.value, 1), gradient: x.shape.length > 1 ? weight.value : x }])),
    ).toThrowError(refusal('backward', 'gradient', 'f32 [1, 3] as the output', 'f32 [3]'))
    expect(() => record(() => record(() => undefined))).toThrowError(refusal('record', 'body'))
    expect(() => record((tape) => tape.watch(empty('i32', [1])))).toThrowError(refusal('watch', 'tensor'))
    expect(() => record((tape) => tape.gradient(x))).toThrowError(refusal('gradient', 'tensor'))
    record((tape) => {
      const y = rmsNorm(x, weight.value, 1)
      tape.backward([{ output: y, gradient }])
      expect(() => tape.backward([{ output: y, gradient }])).toThrowError(
        refusal('backward', 'tape', 'a tape that has not run backward', 'one that has: gradients of gradients are not recorded'),
      )
    })
    record((tape) => {
      const y = rmsNorm(x, weight.value, 1)
      expect(() => checkpoint((input) => rmsNorm(input, reshape(y, [3]), 1), x)).toThrowError(refusal('checkpoint', 'body'))
      const outer = rmsNorm(y, weight.value, 1)
      write(slice(weight.value, 0, 0, 1), [1])
      expect(() => tape.backward([{ output: outer, gradient }])).toThrowError(
        refusal('rms-norm', 'backward', 'tensors as they were in the forward', 'f32 [3] that was overwritten since'),
      )
    })
  })
  weight.dispose()
})

test('a recorded function that throws frees all', () => {
  const weight = new Parameter({ name: 'weight', shape: [3] }).initialise(0)
  const before = liveTensors()
  expect(() =>
    record(() => {
      const y = scope(() => rmsNorm(rmsNorm(zeros([4, 3]), weight.value, 1), weight.value, 1))
      rmsNorm(y, y, 1)
    }),
  ).toThrowError(refusal('rms-norm.forward', 'weight'))
  expect(liveTensors().tensors).toBe(before.tensors)
  expect(liveTensors().bytes).toBe(before.bytes)
  weight.dispose()
})
