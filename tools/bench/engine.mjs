// @ts-check
/**
 * What the embedded engine does with a small mixture of experts (1.4 million parameters: hidden 128, 4 layers, 8 experts of which 2 are taken, 128
 * tokens): tokens per second at several batches, time to the first token of a prompt of 512, what the scheduler costs, memory.
 *
 *   node tools/bench/engine.mjs [--threads 1] [--rounds 5] [--batches 1,8,64,256] [--kv-mib 160] [--experts]     (after ./trilithon build)
 *
 * An engine in a thread of its own; prompts of 32 random tokens, 256 tokens of answer. Medians over the rounds, with their range. "per CPU-s" divides by
 * processor time of the whole process, which says more than the clock where other processes run.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    threads: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '5' },
    batches: { type: 'string', default: '1,8,64,256' },
    'kv-mib': { type: 'string', default: '160' },
    experts: { type: 'boolean', default: false },
  },
})
const [threads, rounds, routedExperts] = [Number(values.threads), Number(values.rounds), values.experts]
const dist = (/** @type {string} */ name) => fileURLToPath(new URL(`../../packages/${name}/dist/index.js`, import.meta.url))
/** @type {typeof import('@trilithon/inference')} */
const { createEngine } = await import(dist('inference'))
/** @type {typeof import('@trilithon/models')} */
const { createModel, parseModelConfig, saveModel } = await import(dist('models'))

const json = {
  model_type: 'qwen3_moe',
  vocab_size: 128,
  hidden_size: 128,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 32,
  intermediate_size: 256,
  moe_intermediate_size: 96,
  num_experts: 8,
  num_experts_per_tok: 2,
  norm_topk_prob: true,
  mlp_only_layers: [],
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  tie_word_embeddings: false,
}
const root = mkdtempSync(join(tmpdir(), 'trilithon-bench-'))
const modelFolder = join(root, 'model')
const model = createModel(parseModelConfig(json, 'config.json'), { seed: 1, configText: JSON.stringify(json) })
saveModel(model, modelFolder)
model.dispose()
const engine = await createEngine({ modelFolder, threads, routedExperts, kvBytes: Number(values['kv-mib']) * 2 ** 20 })

let requests = 0
const random = () => Math.floor(Math.random() * 128)

/**
 * Runs requests side by side, to their ends.
 * @param {number} batch @param {number} promptLength @param {number} maxTokens
 */
function serve(batch, promptLength, maxTokens) {
  const before = { stats: engine.stats(), usage: process.cpuUsage(), start: performance.now() }
  let [left, tokens, first, firstOfAll] = [batch, 0, 0, 0]
  return new Promise(
    (/** @type {(result: { rate: number, perCpu: number, firstMs: number, schedulerUs: number, stepUs: number }) => void} */ resolve) => {
      for (let index = 0; index < batch; index++) {
        let isFirst = true
        engine.submit(
          {
            id: `bench-${requests++}`,
            promptIds: Uint32Array.from({ length: promptLength }, random),
            salt: '',
            tenant: '',
            priority: 0,
            logprobs: 0,
            promptLogprobs: null,
            routedExpertsFrom: routedExperts ? 0 : null,
            reportsIndexChoices: false,
            imported: null,
            sampling: {
              temperature: 1,
              topK: 0,
              topP: 1,
              minP: 0,
              seed: BigInt(requests),
              maxTokens,
              minTokens: 0,
              stopIds: [],
              stopsAtEnd: false,
            },
          },
          (event) => {
            if (event.kind === 'tokens') {
              tokens += event.tokenIds.length
              const now = performance.now()
              if (firstOfAll === 0) firstOfAll = now
              if (isFirst) first = now
              isFirst = false
            }
            if (event.kind !== 'end' || --left > 0) return
            const now = performance.now()
            const { user, system } = process.cpuUsage(before.usage)
            const after = engine.stats()
            const steps = after.steps - before.stats.steps
            resolve({
              // After the first token of the last request.
              rate: (tokens - batch) / ((now - first) / 1e3),
              perCpu: tokens / ((user + system) / 1e6),
              firstMs: firstOfAll - before.start,
              schedulerUs: ((after.schedulerSeconds - before.stats.schedulerSeconds) / steps) * 1e6,
              stepUs: ((after.stepSeconds - before.stats.stepSeconds) / steps) * 1e6,
            })
          },
        )
      }
    },
  )
}

const batches = values.batches.split(',').map(Number)
/** @type {Map<number, Awaited<ReturnType<typeof serve>>[]>} */
const results = new Map(batches.map((batch) => [batch, []]))
/** @type {number[]} */
const firsts = []
await serve(8, 512, 64)
const isIdle = () => new Promise((resolve) => setTimeout(resolve, 20))
for (let round = 0; round < rounds; round++) {
  for (const batch of batches) results.get(batch)?.push(await serve(batch, 32, 256))
  for (let prompt = 0; prompt < 3; prompt++) {
    await isIdle()
    firsts.push((await serve(1, 512, 1)).firstMs)
  }
}
const residentBytes = process.memoryUsage().rss
await engine.dispose()
rmSync(root, { recursive: true })

const sorted = (/** @type {readonly number[]} */ list) => [...list].sort((a, b) => a - b)
const median = (/** @type {readonly number[]} */ list) => sorted(list)[Math.floor(list.length / 2)] ?? Number.NaN
const range = (/** @type {readonly number[]} */ list, digits = 0) =>
  `${median(list).toFixed(digits)} (${sorted(list)[0]?.toFixed(digits)}-${sorted(list).at(-1)?.toFixed(digits)})`
console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.versions.node}, profile fp32, ${threads} threads, ${rounds} rounds${routedExperts ? ', experts recorded' : ''}`,
)
console.log(`${engine.info.parameters} parameters, ${engine.info.blocks} blocks of ${engine.info.blockSize} tokens`)
for (const [batch, list] of results) {
  const of = (/** @type {keyof (typeof list)[number]} */ name) => list.map((result) => result[name])
  console.log(
    `batch ${String(batch).padStart(3)}: ${range(of('rate'))} tokens/s, ${range(of('perCpu'))} per CPU-s, step ${range(of('stepUs'))} µs, scheduler ${range(of('schedulerUs'), 1)} µs of it`,
  )
}
console.log(`first token of a prompt of 512: ${range(firsts, 1)} ms`)
console.log(`resident memory: ${(residentBytes / 2 ** 20).toFixed(0)} MiB`)
