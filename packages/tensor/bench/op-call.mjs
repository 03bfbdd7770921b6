// @ts-check
/**
 * What a call through tensor costs over the native call: rms-norm of one row of 16, whose own work is a few nanoseconds.
 * Interleaved pairs in one process; median of the differences, with the smallest and largest quarter.
 *
 *   node bench/op-call.mjs      (after ./trilithon build)
 */
import { createTensor, describeMachine, disposeTensor, rmsNormForward } from '@trilithon/native'
import { constant, fromArray, Parameter, record, rmsNorm, scope } from '@trilithon/tensor'

const pairs = 15
const calls = 20_000
const x = fromArray('f32', [1, 16], new Float32Array(16).fill(1))
const weight = new Parameter({ name: 'weight', shape: [16], initialiser: constant(1) }).initialise(0)
const y = createTensor('f32', [1, 16])

/** @type {Record<string, () => void>} */
const ways = {
  native() {
    for (let i = 0; i < calls; i++) rmsNormForward({ x: x.handle, weight: weight.value.handle, y, eps: 1e-5 })
  },
  'native with its output': () => {
    for (let i = 0; i < calls; i++) {
      const output = createTensor('f32', [1, 16])
      rmsNormForward({ x: x.handle, weight: weight.value.handle, y: output, eps: 1e-5 })
      disposeTensor(output)
    }
  },
  tensor() {
    for (let i = 0; i < calls; i += 100)
      scope(() => {
        for (let j = 0; j < 100; j++) rmsNorm(x, weight.value, 1e-5)
      })
  },
  'tensor, recorded and run back': () => {
    for (let i = 0; i < calls; i += 100)
      record((tape) => {
        let state = tape.watch(x)
        for (let j = 0; j < 100; j++) state = rmsNorm(state, weight.value, 1e-5)
        tape.backward([{ output: state, gradient: x }])
      })
  },
}

/** @type {Map<string, number[]>} */
const times = new Map(Object.keys(ways).map((name) => [name, []]))
for (let pair = -2; pair < pairs; pair++)
  for (const [name, run] of Object.entries(ways)) {
    const start = process.hrtime.bigint()
    run()
    const ns = Number(process.hrtime.bigint() - start) / calls
    if (pair >= 0) times.get(name)?.push(ns)
  }

const { cpu } = describeMachine()
process.stdout.write(`${cpu.name ?? ''} ${cpu.table}, Node ${process.version}\n`)
const native = /** @type {number[]} */ (times.get('native'))
for (const [name, list] of times) {
  const over = list.map((value, index) => value - /** @type {number} */ (native[index])).sort((a, b) => a - b)
  const at = (/** @type {number} */ share) => /** @type {number} */ (over[Math.floor(share * (over.length - 1))] / 1000).toFixed(2)
  process.stdout.write(
    `${name.padEnd(32)} ${(list.toSorted((a, b) => a - b)[list.length >> 1] / 1000).toFixed(2)} us, over native ${at(0.5)} (${at(0.25)} to ${at(0.75)})\n`,
  )
}
