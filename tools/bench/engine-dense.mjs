// @ts-check
/**
 * How close decoding one sequence comes to reading the weights once: a dense qwen3 of Qwen3-0.6B's shape (constant weights, fp32, 2.4 GB, twice in memory).
 *
 *   node tools/bench/engine-dense.mjs [--threads 1] [--pairs 7]     (after ./trilithon build)
 *
 * The engine's core in this thread. Pairs of a step and of a plain read of all weights (the native sum of squares) in turn; the median of the ratios with
 * their range.
 */
import { cpus } from 'node:os'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { threads: { type: 'string', default: '1' }, pairs: { type: 'string', default: '7' } } })
const [threads, pairs] = [Number(values.threads), Number(values.pairs)]
const dist = (/** @type {string} */ path) => new URL(`../../${path}`, import.meta.url).href
/** @type {typeof import('@trilithon/native')} */
const { configureNative, globalNormSquareSum, pointwiseFill } = await import(dist('native/dist/index.js'))
/** @type {typeof import('@trilithon/models')} */
const { Model, nodeFiles, parseModelConfig } = await import(dist('packages/models/dist/index.js'))
/** @type {typeof import('@trilithon/tensor')} */
const { empty } = await import(dist('packages/tensor/dist/index.js'))
/** @type {typeof import('../../packages/inference/src/engine/engine-core.ts')} */
const { EngineCore } = await import(dist('packages/inference/dist/engine/engine-core.js'))
/** @type {typeof import('../../packages/inference/src/engine/shared-stats.ts')} */
const { SharedStats } = await import(dist('packages/inference/dist/engine/shared-stats.js'))

const json = {
  model_type: 'qwen3',
  vocab_size: 151936,
  hidden_size: 1024,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
  intermediate_size: 3072,
  max_position_embeddings: 40960,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  tie_word_embeddings: true,
}
configureNative({ threads })
const model = new Model(parseModelConfig(json, 'config.json'))
let elements = 0
for (const parameter of model.parameters()) {
  parameter.allocate()
  pointwiseFill({ y: parameter.value.handle, value: parameter.name.endsWith('norm.weight') ? 1 : 0.001 })
  elements += parameter.elements
}
const stats = new SharedArrayBuffer(SharedStats.bytes)
new SharedStats(stats).begin()
const core = new EngineCore({
  model,
  version: 0,
  path: '',
  profile: 'fp32',
  blockSize: 16,
  blocks: 64,
  maxModelLen: 1024,
  maxRunning: 1,
  prefillTokens: 512,
  prefixCaching: true,
  routedExperts: false,
  endIds: [],
  slots: null,
  hasStore: false,
  stats,
  files: nodeFiles,
  openWeights: () => {
    throw new Error('no new weights here')
  },
})
core.submit({
  handle: 0,
  id: '',
  promptIds: Uint32Array.from({ length: 32 }, (_, index) => index),
  salt: '',
  tenant: '',
  priority: 0,
  logprobs: 0,
  promptLogprobs: null,
  routedExpertsFrom: null,
  reportsIndexChoices: false,
  imported: null,
  sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, seed: 1n, maxTokens: 512, minTokens: 0, stopIds: [], stopsAtEnd: false },
})
core.step()
core.step()

const sums = empty('f64', [1, 2])
function read() {
  for (const { value } of model.parameters()) globalNormSquareSum({ x: value.handle, sums: sums.handle, slot: 0 })
}
const timed = (/** @type {() => unknown} */ body) => {
  const start = performance.now()
  body()
  return performance.now() - start
}
/** @type {{ stepMs: number, readMs: number }[]} */
const pairsOf = []
read()
for (let pair = 0; pair < pairs; pair++) pairsOf.push({ stepMs: timed(() => core.step()), readMs: timed(read) })
core.dispose()
const sorted = (/** @type {number[]} */ list) => list.sort((a, b) => a - b)
const summary = (/** @type {number[]} */ list, digits = 0) => {
  const all = sorted(list)
  return `${all[Math.floor(all.length / 2)]?.toFixed(digits)} (${all[0]?.toFixed(digits)}-${all.at(-1)?.toFixed(digits)})`
}
const bytes = elements * 4
console.log(`${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.versions.node}, profile fp32, ${threads} threads, ${pairs} pairs`)
console.log(`${elements} parameters, ${(bytes / 1e9).toFixed(2)} GB`)
console.log(`a step ${summary(pairsOf.map(({ stepMs }) => stepMs))} ms, a read ${summary(pairsOf.map(({ readMs }) => readMs))} ms`)
console.log(
  `decoding reads at ${summary(
    pairsOf.map(({ stepMs }) => bytes / stepMs / 1e6),
    1,
  )} GB/s, ${summary(pairsOf.map(({ stepMs, readMs }) => (100 * readMs) / stepMs))} % of a plain read`,
)
