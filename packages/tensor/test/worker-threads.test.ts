/** Runs the built package (dist) in two worker threads, as roles do: the test target builds first. */
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { fromArray, reshape, rmsNorm, scope, type Tensor } from '../src/index.ts'

const worker = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.entrance).then(({ Parameter, fromArray, liveTensors, normal, record, rmsNorm, toArray }) => {
    const weight = new Parameter({ name: 'weight', shape: [300], initialiser: normal(1) }).initialise(3)
    const rows = Float32Array.from({ length: 64 * 300 }, (_, i) => Math.sin(i))
    const shared = fromArray('f32', [2], [1, 2])
    for (let step = 0; step < 50; step++)
      record((tape) => {
        const output = rmsNorm(fromArray('f32', [64, 300], rows), weight.value, 1e-5)
        tape.backward([{ output, gradient: fromArray('f32', [64, 300], rows) }])
      })
    parentPort.postMessage({ gradient: toArray(weight.gradient), tensors: liveTensors().tensors, handle: shared.handle })
  })
`

test('two worker threads at once compute the same bits; a handle of one is refused by the other', async () => {
  const entrance = new URL('../dist/index.js', import.meta.url).href
  const start = () =>
    new Promise<{ gradient: Float32Array; tensors: number; handle: number }>((resolve, reject) => {
      new Worker(worker, { eval: true, execArgv: [], workerData: { entrance } }).once('message', resolve).once('error', reject)
    })
  const [first, second] = await Promise.all([start(), start()])
  expect(first?.gradient).toEqual(second?.gradient)
  expect(first?.gradient.some((value) => value !== 0)).toBe(true)
  // The parameter, its gradient and the shared tensor.
  expect([first?.tensors, second?.tensors]).toEqual([3, 3])
  scope(() => {
    const local = fromArray('f32', [2], [1, 2])
    const stranger = Object.create(local, { handle: { value: first?.handle } }) as Tensor
    expect(() => rmsNorm(reshape(local, [1, 2]), stranger, 0)).toThrowError(
      expect.objectContaining({
        code: 'NATIVE_ARGUMENT_INVALID',
        path: 'rms-norm.forward.weight',
        message: expect.stringContaining('a tensor handle of another thread'),
      }),
    )
  })
})
