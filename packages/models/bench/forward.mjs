// @ts-check
/**
 * Tokens a second of sizes A, B and C of two families: forward, and forward with backward, of documents packed into 2,048 tokens; decoding one token of 8 sequences.
 *
 *   node bench/forward.mjs [--sizes glm_moe_dsa-A,…] [--threads 1,2] [--documents 8] [--length 256] [--repeats 7] [--clock processor]      (after ./trilithon build)
 */
import { spawnSync } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createModel, createPackedContext, createPagedContext, KVPages, parseModelConfig } from '@trilithon/models'
import { describeMachine } from '@trilithon/native'
import { countElements, fromArray, liveTensors, noGrad, record, scope } from '@trilithon/tensor'
import { sizes } from './sizes.mjs'

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: Object.keys(sizes).join(',') },
    threads: { type: 'string', default: '1,2' },
    documents: { type: 'string', default: '8' },
    length: { type: 'string', default: '256' },
    repeats: { type: 'string', default: '7' },
    clock: { type: 'string', default: 'wall' },
    inner: { type: 'boolean', default: false },
  },
})

if (!values.inner) {
  const { cpu } = describeMachine()
  process.stdout.write(`${cpus()[0]?.model ?? 'processor'}, ${cpu.table}, profile fp32, Node ${process.version}\n`)
  process.stdout.write(
    `${values.documents} documents of ${values.length} tokens; median of ${values.repeats}, tokens/s by the ${values.clock} clock\n\n`,
  )
  process.stdout.write(
    '| size | parameters | threads | forward | forward + backward | with recomputation | decode, 8 sequences | peak MB |\n|---|---|---|---|---|---|---|---|\n',
  )
  // The pool of a process has one size, so each count has a process of its own.
  for (const size of values.sizes.split(','))
    for (const threads of values.threads.split(',')) {
      const { documents, length, repeats, clock } = values
      const args = [
        fileURLToPath(import.meta.url),
        '--inner',
        '--sizes',
        size,
        '--threads',
        threads,
        '--documents',
        documents,
        '--length',
        length,
      ]
      spawnSync(process.execPath, [...args, '--repeats', repeats, '--clock', clock], {
        stdio: 'inherit',
        env: { ...process.env, TRILITHON_THREADS: threads },
      })
    }
} else {
  const size = /** @type {keyof typeof sizes} */ (values.sizes)
  const model = createModel(parseModelConfig(sizes[size], size), { seed: 1 })
  const [documents, length, repeats] = [Number(values.documents), Number(values.length), Number(values.repeats)]
  const tokens = documents * length
  const ids = Array.from({ length: tokens }, (_, index) => (index * 7919 + (index >> 3)) % model.config.vocabSize)
  const targets = [...ids.slice(1), 0]
  const lengths = new Array(documents).fill(length)

  // The clock of the processor says what a step costs on a machine that others use too. With one thread: it adds threads up.
  const now = () => (values.clock === 'processor' ? cpuMilliseconds() : performance.now())
  const cpuMilliseconds = () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }

  /** @param {() => void} run */
  const medianOf = (run) => {
    const times = []
    for (let repeat = -2; repeat < repeats; repeat++) {
      const start = now()
      run()
      if (repeat >= 0) times.push(now() - start)
    }
    return /** @type {number} */ (times.sort((a, b) => a - b)[times.length >> 1])
  }
  const forward = () =>
    noGrad(() =>
      scope(() => {
        model.score(model.forward(ids, createPackedContext(lengths)).hidden, targets)
      }),
    )
  /** @param {boolean} recompute */
  const step = (recompute) => {
    record((tape) => {
      const { logprobs } = model.score(model.forward(ids, createPackedContext(lengths), { recompute }).hidden, targets)
      tape.backward([{ output: logprobs, gradient: fromArray('f32', [tokens], new Float32Array(tokens).fill(1 / tokens)) }])
    })
    for (const parameter of model.parameters()) parameter.zeroGradient()
  }
  const rates = [medianOf(forward), medianOf(() => step(false)), medianOf(() => step(true))].map((ms) => (tokens * 1000) / ms)
  const peak = liveTensors().peakBytes / 1e6
  rates.push(8000 / decode())
  const cells = [
    size,
    `${(countElements(model.parameters()) / 1e6).toFixed(2)} M`,
    values.threads,
    ...rates.map((rate) => Math.round(rate).toLocaleString('en-US')),
    peak.toFixed(0),
  ]
  process.stdout.write(`| ${cells.join(' | ')} |\n`)

  /** Milliseconds of a step that adds a token to each of 8 sequences of 256. */
  function decode() {
    const blocks = 17
    const pages = new KVPages(model.config, 8 * blocks, 16)
    const tables = Array.from({ length: 8 }, (_, sequence) => Array.from({ length: blocks }, (_, slot) => sequence * blocks + slot))
    /** @param {number} newTokens @param {number} cachedTokens */
    const run = (newTokens, cachedTokens) =>
      scope(() => {
        const context = createPagedContext(
          pages,
          tables.map((own) => ({ newTokens, cachedTokens, pages: own })),
        )
        const some = ids.slice(0, 8 * newTokens)
        model.score(model.forward(some, context).hidden, some)
      })
    run(256, 0)
    model.packProjections()
    const ms = medianOf(() => run(1, 256))
    model.unpackProjections()
    pages.dispose()
    return ms
  }
}
