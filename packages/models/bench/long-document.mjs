// @ts-check
/**
 * One document of 32,768 tokens through size A, forward and backward with recomputation: seconds, and the most memory that tensors took.
 *
 *   node bench/long-document.mjs [--size glm_moe_dsa-A] [--length 32768]      (after ./trilithon build)
 */
import { parseArgs } from 'node:util'
import { createModel, createPackedContext, parseModelConfig } from '@trilithon/models'
import { fromArray, liveTensors, record } from '@trilithon/tensor'
import { sizes } from './sizes.mjs'

const { values } = parseArgs({
  options: { size: { type: 'string', default: 'glm_moe_dsa-A' }, length: { type: 'string', default: '32768' } },
})
const size = /** @type {keyof typeof sizes} */ (values.size)
const length = Number(values.length)
const model = createModel(parseModelConfig({ ...sizes[size], max_position_embeddings: Math.max(4096, length) }, size), { seed: 1 })
const ids = Array.from({ length }, (_, index) => (index * 7919 + (index >> 3)) % model.config.vocabSize)
const start = performance.now()
record((tape) => {
  const { logprobs } = model.score(model.forward(ids, createPackedContext([length]), { recompute: true }).hidden, [...ids.slice(1), 0])
  tape.backward([{ output: logprobs, gradient: fromArray('f32', [length], new Float32Array(length).fill(1 / length)) }])
})
const seconds = ((performance.now() - start) / 1000).toFixed(1)
const { peakBytes } = liveTensors()
const resident = process.resourceUsage().maxRSS / 1e6
process.stdout.write(
  `${size}, ${length} tokens: ${seconds} s, tensors at most ${(peakBytes / 1e9).toFixed(2)} GB, process ${resident.toFixed(2)} GB\n`,
)
