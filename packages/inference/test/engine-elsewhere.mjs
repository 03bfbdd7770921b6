// @ts-check
/**
 * Another process: an engine with its own thread, from the built packages, goes through what may happen to requests. Prints what it answered to each: the
 * bits of the log-probabilities, versions and rows of experts.
 */
import { memoryKVStore } from '@trilithon/builtin'
import { silentLogger } from '@trilithon/core'
import { createEngine } from '@trilithon/inference'

/** @typedef {import('@trilithon/inference').Engine} Engine */
/** @typedef {import('@trilithon/inference').EngineRequest} EngineRequest */
/** @typedef {{ folders: [string, string], blockBytes: number, vocab: number, seed: number }} Input */

/** @type {Input} */
const { folders, blockBytes, vocab, seed } = JSON.parse(process.argv[2] ?? '')
let state = seed
const random = (/** @type {number} */ below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const ids = (/** @type {number} */ count) => Array.from({ length: count }, () => random(vocab))
/** @type {object[]} */
const answers = []
let requests = 0

/**
 * @param {Engine} engine @param {string} scenario @param {number[]} prompt
 * @param {{ salt?: string, maxTokens?: number, temperature?: number, imported?: EngineRequest['imported'], onToken?: (count: number) => void }} [options]
 * @returns {Promise<{ tokens: number[], versions: number[], cached: number, stored: number }>}
 */
function generate(
  engine,
  scenario,
  prompt,
  { salt = 'a', maxTokens = 6, temperature = 0.5 + random(8) / 8, imported = null, onToken } = {},
) {
  /** @type {number[]} */
  const tokens = []
  /** @type {number[]} */
  const bits = []
  /** @type {number[]} */
  const versions = []
  /** @type {number[]} */
  const contextVersionsMin = []
  let cached = 0
  let stored = 0
  return new Promise((resolve, reject) => {
    engine.submit(
      {
        id: String(requests++),
        promptIds: Uint32Array.from(prompt),
        salt,
        tenant: '',
        priority: 0,
        logprobs: 0,
        promptLogprobs: null,
        routedExpertsFrom: 0,
        reportsIndexChoices: false,
        imported,
        sampling: {
          temperature,
          topK: random(3) === 0 ? 5 : 0,
          topP: random(3) === 0 ? 0.9 : 1,
          minP: 0,
          seed: BigInt(random(1000)),
          maxTokens,
          minTokens: 0,
          stopIds: [],
          stopsAtEnd: false,
        },
      },
      (event) => {
        if (event.kind === 'prompt') {
          cached = event.cachedTokens
          stored = event.storedTokens
        } else if (event.kind === 'tokens') {
          tokens.push(...event.tokenIds)
          bits.push(...new Uint32Array(event.logprobs.slice().buffer))
          versions.push(...event.versions)
          contextVersionsMin.push(...event.contextVersionsMin)
          onToken?.(tokens.length)
        } else {
          if (event.reason !== 'length') reject(new Error(`${scenario}: ${event.reason} ${event.error?.message ?? ''}`))
          const routes = event.routedExperts === null ? null : Buffer.from(event.routedExperts.data).toString('hex')
          answers.push({ scenario, prompt, tokens, bits, versions, contextVersionsMin, temperature, cached, stored, routes })
          resolve({ tokens, versions, cached, stored })
        }
      },
    )
  })
}

const common = { modelFolder: folders[0], blockSize: 4, maxModelLen: 96, routedExperts: true, threads: 1 }
/** Runs `body` with an engine of its own. @param {import('@trilithon/inference').EngineOptions} options @param {(engine: Engine) => Promise<unknown>} body */
async function withEngine(options, body) {
  const engine = await createEngine(options)
  await body(engine)
  await engine.dispose()
}
const assert = (/** @type {boolean} */ condition, /** @type {string} */ message) => {
  if (!condition) throw new Error(message)
}

for (const prefillTokens of [512, 1 + random(9)])
  await withEngine({ ...common, prefillTokens }, async (engine) => {
    for (const batch of [1, 2 + random(14), 64])
      await Promise.all(
        Array.from({ length: batch }, () => generate(engine, `batch ${batch}, pieces of ${prefillTokens}`, ids(1 + random(40)))),
      )
  })

await withEngine({ ...common, prefillTokens: 7 }, async (engine) => {
  const prompt = ids(21)
  const first = await generate(engine, 'first turn', prompt)
  const turn = [...prompt, ...first.tokens, ...ids(5)]
  assert((await generate(engine, 'second turn', turn)).cached === 24, 'the second turn finds the blocks of the first')
  assert((await generate(engine, 'another salt', turn, { salt: 'b' })).cached === 0, 'another salt finds nothing')
  await Promise.all(Array.from({ length: 16 }, () => generate(engine, 'a group with one prompt', turn, { salt: 'c' })))
})

await withEngine({ ...common, kvBytes: 26 * blockBytes }, async (engine) => {
  await Promise.all(Array.from({ length: 12 }, () => generate(engine, 'preempted', ids(4 + random(12)), { maxTokens: 30 })))
  assert(engine.stats().preemptions > 0, 'pages were to run out')
})

const table = { type: /** @type {const} */ ('native'), cpu: { num_bytes: 2 ** 24 }, disk: null }
const config = { 'inference.kv_cache_offload': table }
const run = { roles: [/** @type {const} */ ('inference')], workingDirectory: '/', numericsProfile: 'fp32', resolved: {} }
const store = await memoryKVStore.create({ config, run, needs: {}, log: silentLogger, signal: new AbortController().signal })
/** @type {Map<string, import('@trilithon/core').KVBlock>} */
const put = new Map()
const keep = store.put.bind(store)
store.put = (entries) => {
  for (const { key, block } of entries)
    put.set(`${key.salt}/${Buffer.from(key.hash).toString('hex')}`, { ...block, bytes: Uint8Array.from(block.bytes) })
  return keep(entries)
}
const early = ids(33)
/** @type {{ tokens: number[] } | undefined} */
let earlyAnswer
await withEngine({ ...common, kvBytes: 26 * blockBytes, store }, async (engine) => {
  earlyAnswer = await generate(engine, 'before its blocks left', early)
  for (let other = 0; other < 8; other++) await generate(engine, 'pushes others out', ids(60))
  const { stored } = await generate(engine, 'blocks came back from the store', early, { maxTokens: 9 })
  assert(stored === 32, `32 tokens were to come back, ${stored} did`)
})
await withEngine(common, async (engine) => {
  const { salt, tenant, profile, format } = { salt: 'a', tenant: '', profile: engine.info.profile, format: engine.info.kvFormat }
  const blocks = [...put].filter(([name]) => name.startsWith('a/'))
  const imported = blocks.map(([name, block]) => ({
    key: { salt, tenant, profile, format, hash: Buffer.from(name.slice(2), 'hex') },
    block,
  }))
  const id = earlyAnswer?.tokens[0] ?? 0
  const firstToken = { id, logprob: -1, version: 0, contextVersionMin: 0 }
  const { cached } = await generate(engine, 'from imported blocks', early, { imported: { blocks: imported, firstToken } })
  assert(cached === 32, `32 tokens were to be imported, ${cached} were`)
})

// An engine may be done before its update has come, where the machine has other things to do: then another one is asked.
for (let isThrough = false, attempt = 0; !isThrough; attempt++)
  await withEngine({ ...common, maxModelLen: 512 }, async (engine) => {
    assert(attempt < 20, 'no request was still running when its update came')
    const prompt = ids(17)
    await engine.prepareWeights({ version: 1, path: folders[1] })
    /** @type {Promise<void> | undefined} */
    let update
    const begun = answers.length
    const { versions } = await generate(engine, 'through an update', prompt, {
      maxTokens: 300,
      onToken: (count) => {
        if (count !== 10) return
        update = (async () => {
          await engine.pause('keep')
          await engine.flipWeights(1)
          await engine.resume()
          await engine.finishWeights(1)
        })()
      },
    })
    await update
    isThrough = versions.at(-1) === 1
    if (!isThrough) {
      answers.length = begun
      return
    }
    assert((await generate(engine, 'new weights, old salt', prompt)).cached === 16, 'the old salt keeps its blocks')
    assert((await generate(engine, 'new weights, new salt', prompt, { salt: 'new' })).cached === 0, 'a new salt finds nothing')
  })
process.stdout.write(JSON.stringify(answers))
