// @ts-check
/**
 * Another process: makes the model anew from (config, seed) and feeds a document through pages in pieces, by the built package. Prints the bits of the
 * hidden states and of the log-probabilities.
 */
import { createModel, createPagedContext, KVPages, parseModelConfig } from '@trilithon/models'
import { scope, toArray } from '@trilithon/tensor'

const { json, seed, ids, pieces, blockSize } = JSON.parse(process.argv[2] ?? '')
const model = createModel(parseModelConfig(json, 'config.json'), { seed })
const blocks = Math.ceil(ids.length / blockSize)
const pages = new KVPages(model.config, blocks, blockSize)
const table = Array.from({ length: blocks }, (_, index) => blocks - 1 - index)
/** @type {number[]} */
const hidden = []
/** @type {number[]} */
const logprobs = []
for (let cachedTokens = 0, step = 0; cachedTokens < ids.length; step++) {
  const newTokens = Math.min(pieces[step % pieces.length], ids.length - cachedTokens)
  const begin = cachedTokens
  scope(() => {
    const result = model.forward(
      ids.slice(begin, begin + newTokens),
      createPagedContext(pages, [{ newTokens, cachedTokens: begin, pages: table }]),
    )
    hidden.push(.../** @type {Float32Array} */ (toArray(result.hidden)))
    const targets = Array.from({ length: newTokens }, (_, index) => ids[begin + index + 1] ?? 0)
    logprobs.push(.../** @type {Float32Array} */ (toArray(model.score(result.hidden, targets).logprobs)))
  })
  cachedTokens += newTokens
}
const bitsOf = (/** @type {number[]} */ values) => [...new Uint32Array(Float32Array.from(values).buffer)]
process.stdout.write(JSON.stringify({ hidden: bitsOf(hidden), logprobs: bitsOf(logprobs.slice(0, -1)) }))
