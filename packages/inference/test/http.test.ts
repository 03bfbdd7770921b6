/** A real engine behind its server: what comes over HTTP is what the engine does, and nothing is left behind. */
import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import { memoryKVStore } from '@trilithon/builtin'
import { type KVStore, silentLogger } from '@trilithon/core'
import { saveModel } from '@trilithon/models'
import { someIds, type TinyFamily } from '@trilithon/testing'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { createEngine } from '../src/engine/create-engine.ts'
import type { Engine } from '../src/engine/engine.ts'
import type { EngineOptions } from '../src/engine/engine-options.ts'
import { binaryMediaType } from '../src/server/binary-answer.ts'
import { createInferenceServer, type InferenceServer } from '../src/server/create-server.ts'
import { bitsOf, generate, requestOf } from './running.ts'
import { TestFolders, tinyModel } from './tiny-models.ts'

const folders = new TestFolders()
afterAll(() => folders.remove())

let engine: Engine
let server: InferenceServer
afterEach(async () => {
  await server.close({ drainMs: 0 })
  await engine.dispose()
})

async function serve(family: TinyFamily = 'glm_moe_dsa', options: Partial<EngineOptions> = {}): Promise<void> {
  const modelFolder = folders.model(family, 1)
  engine = await createEngine({ modelFolder, thread: 'here', blockSize: 4, maxModelLen: 256, routedExperts: true, ...options })
  server = await createInferenceServer({
    ...{ engine, model: 'm', modelFolder, text: null, host: '127.0.0.1', port: 0, apiKey: null, returnsRoutedExperts: true, seed: 0 },
    ...{ livenessTimeoutMs: 30_000, log: silentLogger },
  })
}

const post = (path: string, body?: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  fetch(`${server.url}${path}`, {
    method: 'POST',
    ...(body === undefined ? { headers } : { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }),
    ...(signal === undefined ? {} : { signal }),
  })
interface Choice {
  readonly token_ids: number[]
  readonly finish_reason: string
  readonly routed_experts: string
  readonly weight_versions: { version: string; start: number; end: number }[]
  readonly context_versions: { version: string; start: number; end: number }[]
  readonly logprobs: { content: { logprob: number }[] }
}
interface Answer {
  readonly choices: readonly [Choice, ...Choice[]]
  readonly usage: { completion_tokens: number; prompt_tokens_details: { cached_tokens: number } }
}
const ask = async (body: object, sampling: object = {}): Promise<Answer> => {
  const response = await post('/inference/v1/generate', { sampling_params: { logprobs: 0, ...sampling }, ...body })
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as Answer
}
const until = async (condition: () => boolean) => {
  const end = performance.now() + 5000
  while (!condition()) {
    if (performance.now() > end) throw new Error('it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
/** A folder in Hugging Face's format with other weights, named as versions are. */
function version(number: number, seed: number): string {
  const path = join(folders.root, `${seed}`, `step_${number}`)
  const model = tinyModel('glm_moe_dsa', seed)
  saveModel(model, path)
  model.dispose()
  return path
}

describe('what is generated', () => {
  it('has over HTTP, as JSON and binary, the bits that the engine gives', async () => {
    await serve()
    const prompt = someIds(21, 61, 3)
    const direct = await generate(engine, requestOf(prompt, { routedExpertsFrom: 0, sampling: { seed: 5n, maxTokens: 12 } }))
    const sampling = { seed: 5, max_tokens: 12, ignore_eos: true }
    const [choice] = (await ask({ token_ids: prompt }, sampling)).choices
    expect(choice.token_ids).toEqual(direct.tokens)
    expect(bitsOf(choice.logprobs.content.map(({ logprob }) => logprob))).toEqual(bitsOf(direct.logprobs))
    const rows = Buffer.from(direct.end?.routedExperts?.data ?? [])
    expect(Buffer.from(choice.routed_experts, 'base64').subarray(128)).toEqual(rows)
    const response = await post('/inference/v1/generate', { token_ids: prompt, sampling_params: sampling }, { accept: binaryMediaType })
    const bytes = Buffer.from(await response.arrayBuffer())
    const start = 4 + bytes.readUInt32LE(0)
    const [binary] = JSON.parse(bytes.subarray(4, start).toString()).choices
    const logprobs = direct.tokens.map((_, at) => bytes.readFloatLE(start + binary.tokens.offset + 16 * at + 4))
    expect(bitsOf(logprobs)).toEqual(bitsOf(direct.logprobs))
    const { offset, bytes: size } = binary.routed_experts
    expect(bytes.subarray(start + offset, start + offset + size)).toEqual(rows)
  })

  it('reuses KV under the same salt and under no other, as recorded', async () => {
    await serve()
    const token_ids = someIds(70, 61, 4)
    const cached = async (more: object, ids = token_ids) =>
      (await ask({ token_ids: ids, ...more }, { max_tokens: 2 })).usage.prompt_tokens_details.cached_tokens
    expect(await cached({ cache_salt: 'v7' })).toBe(0)
    // All whole blocks but the last token, which has to be computed.
    expect(await cached({ cache_salt: 'v7' })).toBe(68)
    expect(await cached({ cache_salt: 'v8' })).toBe(0)
    expect(await cached({})).toBe(0)
    await post('/reset_prefix_cache')
    expect(await cached({ cache_salt: 'v7' })).toBe(0)
  })

  it('comes back from the KV store with the same bits', async () => {
    const run = { role: 'inference', workingDirectory: folders.root, plugins: [], configHash: '' } as never
    const store = (await memoryKVStore.create({
      config: { 'inference.kv_cache_offload': { cpu: { num_bytes: 1 << 24 }, disk: null } },
      ...{ run, needs: {} as never, log: silentLogger, signal: new AbortController().signal },
    })) as KVStore
    await serve('glm_moe_dsa', { store, kvBytes: 40_000, maxModelLen: 64 })
    const token_ids = someIds(30, 61, 6)
    const first = await ask({ token_ids, cache_salt: 'a' }, { seed: 1, max_tokens: 6, ignore_eos: true })
    // Others push it out of the pages.
    for (let other = 0; other < 40; other++) await ask({ token_ids: someIds(50, 61, 100 + other) }, { max_tokens: 1 })
    const again = await ask({ token_ids, cache_salt: 'a' }, { seed: 1, max_tokens: 6, ignore_eos: true })
    expect(engine.stats().storeHits).toBeGreaterThan(0)
    expect(again.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(0)
    expect(again.choices[0]).toEqual(first.choices[0])
    await store.dispose()
  })

  it('frees everything, whenever clients go', async () => {
    await serve()
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const controller = new AbortController()
        const body = {
          token_ids: someIds(5 + index, 61, index),
          sampling_params: { max_tokens: 200, ignore_eos: true },
          stream: index % 2 === 0,
        }
        setTimeout(() => controller.abort(), index)
        await post('/inference/v1/generate', body, {}, controller.signal)
          .then((response) => response.text())
          .catch(() => undefined)
      }),
    )
    await until(() => engine.stats().running + engine.stats().waiting === 0)
    await until(() => engine.stats().usedBlocks === 0 && server.active.size === 0)
  })
})

describe('new weights', () => {
  it('serve after the flip, keep the KV of what runs, and are those that were sent', async () => {
    await serve()
    const checksums = async () =>
      ((await (await post('/weight_checker', { action: 'checksum' })).json()) as { checksums: object }).checksums
    const before = await checksums()
    const path = version(3, 2)
    const running = ask({ token_ids: someIds(8, 61, 1), cache_salt: 'old' }, { max_tokens: 200, ignore_eos: true })
    await until(() => engine.stats().generatedTokens > 20)
    expect((await post('/start_weight_update', { version: 3, path })).status).toBe(200)
    await post('/pause?mode=keep')
    expect((await post('/update_weights', { update_info: { version: 3 } })).status).toBe(200)
    await post('/resume')
    expect((await post('/finish_weight_update', { weight_version: '3' })).status).toBe(200)
    const [choice] = (await running).choices
    expect(choice.token_ids).toHaveLength(200)
    expect(choice.weight_versions.map((span) => span.version)).toEqual(['0', '3'])
    expect(choice.context_versions).toEqual([{ version: '0', start: 0, end: 200 }])
    const after = await checksums()
    expect(Object.keys(after)).toEqual(Object.keys(before))
    expect(Object.values(after)).not.toEqual(Object.values(before))
    const [fresh] = (await ask({ token_ids: someIds(8, 61, 1), cache_salt: 'new' }, { max_tokens: 3 })).choices
    expect(fresh.context_versions.every((span) => span.version === '3')).toBe(true)
  })

  it('lose none of 64 streams', { timeout: 20_000 }, async () => {
    await serve()
    const streams = Array.from({ length: 64 }, async (_, index) => {
      const body = { token_ids: someIds(4, 61, index), sampling_params: { max_tokens: 150, ignore_eos: true }, stream: true }
      const text = await (await post('/inference/v1/generate', body)).text()
      const chunks = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
      return chunks.flatMap(({ choices }: { choices: Choice[] }) => choices)
    })
    const path = version(1, 3)
    await until(() => engine.stats().generatedTokens > 64 * 2)
    await post('/start_weight_update', { version: 1, path })
    await post('/update_weights', { update_info: { version: 1, between_steps: true } })
    for (const choices of await Promise.all(streams)) {
      expect(choices.flatMap(({ token_ids }) => token_ids)).toHaveLength(150)
      expect(choices.at(-1)).toMatchObject({ finish_reason: 'length' })
      expect(choices.at(-1)?.weight_versions.map((span) => span.version)).toEqual(['0', '1'])
    }
  })

  it('that are cut short, of another model or not there are refused, and the old ones serve', async () => {
    await serve()
    const sum = JSON.stringify(await engine.weightChecksums())
    const cut = version(4, 4)
    truncateSync(join(cut, 'model.safetensors'), 900)
    const other = folders.model('qwen3', 1, {}, 'step_5')
    for (const [number, path] of [
      [4, cut],
      [5, other],
      [6, join(folders.root, 'nowhere')],
    ] as const) {
      const response = await post('/start_weight_update', { version: number, path })
      expect([path, response.status]).toEqual([path, 400])
      expect(((await response.json()) as { error: { type: string } }).error.type).toBe('BadRequestError')
      await post('/pause?mode=keep')
      expect((await post('/update_weights', { update_info: { version: number } })).status).toBe(409)
      expect((await post('/update_weights', { weight_dir: path })).status).toBe(400)
      await post('/resume')
    }
    expect(JSON.stringify(await engine.weightChecksums())).toBe(sum)
    expect((await ask({ token_ids: [1, 2] }, { max_tokens: 2 })).choices[0].weight_versions[0]?.version).toBe('0')
  })
})
