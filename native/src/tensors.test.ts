import { spawnSync } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import {
  configureNative,
  createTensor,
  describeTensor,
  disposeTensor,
  memoryStats,
  readTensor,
  rmsNormBackward,
  rmsNormForward,
  type TensorHandle,
  viewTensor,
  wrapShared,
  writeTensor,
} from './index.ts'

const made: TensorHandle[] = []

function tensor(shape: readonly number[], values?: Float32Array): TensorHandle {
  const handle = createTensor('f32', shape)
  made.push(handle)
  if (values !== undefined) writeTensor(handle, values)
  return handle
}

function valuesOf(handle: TensorHandle): Float32Array {
  const array = new Float32Array(describeTensor(handle).shape.reduce((count, size) => count * size, 1))
  readTensor(handle, array)
  return array
}

afterEach(() => {
  for (const handle of made.splice(0)) disposeTensor(handle)
  expect(memoryStats()).toMatchObject({ liveTensors: 0, usedBytes: 0 })
})

const invalid = (argument: string, expected: unknown, given: unknown) =>
  expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', details: expect.objectContaining({ argument, expected, given }) })

test('an op computes through handles', () => {
  const x = tensor([2, 3], Float32Array.of(3, 0, 4, 1, 1, 1))
  const weight = tensor([3], Float32Array.of(1, 2, 3))
  const y = tensor([2, 3])
  const rstd = tensor([2])
  rmsNormForward({ x, weight, y, rstd, eps: 0 })
  const scale = 1 / Math.sqrt(25 / 3)
  expect([...valuesOf(y)]).toEqual([3 * scale, 0, 12 * scale, 1, 2, 3].map((value) => expect.closeTo(value, 5)))
  expect([...valuesOf(rstd)]).toEqual([expect.closeTo(scale, 6), 1])
  const dX = tensor([2, 3])
  const dWeight = tensor([3])
  rmsNormBackward({ dY: y, x, weight, rstd, dX, dWeight, accumulate: false })
  expect(valuesOf(dX).every(Number.isFinite)).toBe(true)
})

test('views share storage; the memory is free with the last of them', () => {
  const whole = createTensor('f32', [2, 4])
  writeTensor(whole, Float32Array.of(0, 1, 2, 3, 4, 5, 6, 7))
  const columns = viewTensor(whole, [2, 2], [4, 1], 1)
  expect(describeTensor(columns)).toEqual({ dtype: 'f32', shape: [2, 2], strides: [4, 1] })
  disposeTensor(whole)
  expect(memoryStats().usedBytes).toBeGreaterThan(0)
  const flat = tensor([2, 2])
  const ones = tensor([2], Float32Array.of(1, 1))
  rmsNormForward({ x: columns, weight: ones, y: flat, eps: 0 })
  expect(valuesOf(flat)[1]).toBeCloseTo(2 / Math.sqrt(2.5), 5)
  disposeTensor(columns)
})

test('a disposed handle is refused for ever, also when its slot is used again', () => {
  const old = createTensor('f32', [2])
  disposeTensor(old)
  const next = tensor([2])
  expect(next).not.toBe(old)
  const disposed = expect.objectContaining({ code: 'NATIVE_HANDLE_DISPOSED' })
  expect(() => disposeTensor(old)).toThrowError(disposed)
  expect(() => describeTensor(old)).toThrowError(disposed)
  const y = tensor([1, 2])
  expect(() => rmsNormForward({ x: y, weight: old, y, eps: 0 })).toThrowError(
    expect.objectContaining({ code: 'NATIVE_HANDLE_DISPOSED', path: 'rms-norm.forward.weight' }),
  )
})

test('every wrong argument is one error that names op, argument, expected and given', () => {
  const x = tensor([2, 3])
  const y = tensor([2, 3])
  const weight = tensor([3])
  const short = tensor([2])
  const call = (change: object) => () => rmsNormForward({ x, weight, y, eps: 1e-5, ...change })
  expect(call({ weight: short })).toThrowError(invalid('weight', 'shape [width 3 as in x]', '[2]'))
  expect(call({ x: short })).toThrowError(invalid('x', 'shape [tokens, width]', '[2]'))
  expect(call({ weight: undefined })).toThrowError(invalid('weight', 'a tensor [width]', 'nothing'))
  expect(call({ weight: 'w' })).toThrowError(invalid('weight', 'a tensor handle', 'the string "w"'))
  expect(call({ weight: 1.5 })).toThrowError(invalid('weight', 'a tensor handle', 'the number 1.5'))
  expect(call({ weight: 0 })).toThrowError(invalid('weight', 'a tensor of this thread', 'a tensor handle of another thread'))
  expect(call({ eps: Number.NaN })).toThrowError(invalid('eps', 'a finite number', expect.stringContaining('nan')))
  expect(call({ eps: -1 })).toThrowError(invalid('eps', 'a number >= 0', '-1'))
  expect(call({ eps: '1' })).toThrowError(invalid('eps', 'a number', 'the string "1"'))
  expect(call({ y: x })).toThrowError(invalid('y', 'memory of its own', 'memory that x uses too'))
  const integers = createTensor('i32', [3])
  made.push(integers)
  expect(call({ weight: integers })).toThrowError(invalid('weight', 'dtype f32 or f64', 'i32'))
  const doubles = createTensor('f64', [3])
  made.push(doubles)
  expect(call({ weight: doubles })).toThrowError(invalid('weight', 'dtype f32, which x has', 'f64'))
  const transposed = viewTensor(x, [3, 2], [1, 3])
  made.push(transposed)
  expect(call({ x: transposed })).toThrowError(invalid('x', 'rows without gaps', 'shape [3, 2] with strides [1, 3]'))
  const empty = tensor([0, 3])
  expect(call({ x: empty, y: tensor([0, 3]) })).toThrowError(invalid('x', '[tokens, width] with no zero among them', '[0, 3]'))
  call({})()
})

test('the border refuses what it cannot hold', () => {
  const x = tensor([2, 3])
  expect(() => createTensor('f99' as 'f32', [1])).toThrowError(invalid('dtype', expect.stringContaining('f32'), 'the string "f99"'))
  expect(() => createTensor('f32', [1.5])).toThrowError(invalid('shape', expect.stringContaining('whole number'), 'the number 1.5'))
  expect(() => createTensor('f32', [1, 1, 1, 1, 1, 1, 1])).toThrowError(invalid('shape', 'at most 6 dims', '7'))
  expect(() => createTensor('f32', [2 ** 40, 2 ** 40])).toThrowError(expect.objectContaining({ code: 'NATIVE_MEMORY_EXHAUSTED' }))
  expect(() => viewTensor(x, [7])).toThrowError(invalid('shape', expect.stringContaining('6 elements'), expect.stringContaining('[7]')))
  expect(() => viewTensor(x, [3, 2], [3, 1])).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID' }))
  expect(() => viewTensor(x, [2], [1], -1)).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID' }))
  expect(() => writeTensor(x, new Float32Array(5))).toThrowError(invalid('array', '24 bytes, as f32 [2, 3] has', '20 bytes'))
  expect(() => writeTensor(x, new Int32Array(6))).toThrowError(invalid('array', 'a typed array for f32', 'another element type'))
  expect(() => readTensor(x, [] as unknown as Float32Array)).toThrowError(invalid('array', 'a typed array', 'an array'))
  const detached = new Float32Array(6)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  expect(() => writeTensor(x, detached)).toThrowError(
    invalid('array', 'a typed array with its buffer', 'one whose buffer has been detached'),
  )
  expect(() => wrapShared('f32', [6], new Float32Array(6))).toThrowError(
    invalid('array', 'a typed array over a SharedArrayBuffer', 'one over an ArrayBuffer'),
  )
})

test('shared memory is used in place', () => {
  const shared = new Float32Array(new SharedArrayBuffer(24))
  shared.set([3, 0, 4, 1, 1, 1])
  const x = wrapShared('f32', [2, 3], shared)
  made.push(x)
  const weight = tensor([3], Float32Array.of(1, 1, 1))
  const y = tensor([2, 3])
  rmsNormForward({ x, weight, y, eps: 0 })
  expect(valuesOf(y)[3]).toBeCloseTo(1, 6)
})

test('an abort flag stops an op', () => {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  configureNative({ abortFlag: flag })
  try {
    const x = tensor([2, 3])
    const weight = tensor([3])
    const y = tensor([2, 3])
    rmsNormForward({ x, weight, y, eps: 0 })
    Atomics.store(flag, 0, 1)
    expect(() => rmsNormForward({ x, weight, y, eps: 0 })).toThrowError(
      expect.objectContaining({ code: 'NATIVE_ABORTED', path: 'rms-norm.forward' }),
    )
    expect(() => configureNative({ threads: 2 })).toThrowError(invalid('options', 'no live tensors', '3 of them'))
  } finally {
    for (const handle of made.splice(0)) disposeTensor(handle)
    configureNative({ abortFlag: null })
  }
})

test('a handle of a thread that has ended is refused by a process that loads the addon after it', () => {
  const script = `
    const { Worker } = require('node:worker_threads')
    const body = "const { parentPort, workerData } = require('node:worker_threads'); parentPort.postMessage(require(workerData).createTensor('f32', [2]))"
    const run = (file) => new Promise((resolve, reject) => {
      let handle
      new Worker(body, { eval: true, workerData: file }).on('message', (value) => { handle = value }).on('error', reject).on('exit', () => resolve(handle))
    })
    run(process.argv[1]).then((first) => run(process.argv[1]).then((second) => {
      const own = require(process.argv[1]).createTensor('f32', [2])
      console.log(new Set([first, second, own]).size)
    }))
  `
  const addonFile = `${import.meta.dirname}/../build/Release/trilithon_native.node`
  const child = spawnSync(process.execPath, ['-e', script, addonFile], { encoding: 'utf8' })
  expect(child.stdout.trim(), child.stderr).toBe('3')
})

test('configuration is checked', () => {
  expect(() => configureNative({ profile: 'bf16' })).toThrowError(expect.objectContaining({ code: 'KERNEL_UNAVAILABLE' }))
  expect(() => configureNative({ profile: 'fp7' as 'fp32' })).toThrowError(invalid('profile', 'fp32 or bf16', 'fp7'))
  expect(() => configureNative({ threads: 0 })).toThrowError(invalid('threads', 'a whole number from 1 to 1024', 'the number 0'))
  expect(() => configureNative({ abortFlag: new Int32Array(1) })).toThrowError(
    invalid('abortFlag', 'an Int32Array over a SharedArrayBuffer', 'a typed array'),
  )
})

test('two workers compute at once and get the same bits; a handle of one is refused by the other', async () => {
  const script = `
    const { parentPort, workerData } = require('node:worker_threads')
    const addon = require(workerData)
    const x = addon.createTensor('f32', [64, 300]), weight = addon.createTensor('f32', [300]), y = addon.createTensor('f32', [64, 300])
    const input = Float32Array.from({ length: 64 * 300 }, (_, i) => Math.sin(i))
    addon.writeTensor(x, input)
    addon.writeTensor(weight, input.slice(0, 300))
    for (let i = 0; i < 200; i++) addon.ops['rms-norm.forward'](x, weight, y, null, 1e-5)
    const output = new Float32Array(64 * 300)
    addon.readTensor(y, output)
    parentPort.postMessage({ output, x })
  `
  const addonFile = `${import.meta.dirname}/../build/Release/trilithon_native.node`
  const start = () =>
    new Promise<{ output: Float32Array; x: TensorHandle }>((resolve, reject) => {
      new Worker(script, { eval: true, workerData: addonFile }).once('message', resolve).once('error', reject)
    })
  const [first, second] = await Promise.all([start(), start()])
  expect(first?.output).toEqual(second?.output)
  expect(() => describeTensor(first?.x as TensorHandle)).toThrowError(
    invalid('tensor', 'a tensor of this thread', 'a tensor handle of another thread'),
  )
})
