/** Blocks that leave and come back: bit for bit with their rows of experts, and whatever a store does wrong costs a computation and nothing else. */
import { createHash } from 'node:crypto'
import { memoryKVStore } from '@trilithon/builtin'
import { type KVStore, silentLogger } from '@trilithon/core'
import { kvElementsPerToken } from '@trilithon/models'
import { recordingLogger, someIds, tinyFamilies } from '@trilithon/testing'
import { afterAll, expect, test } from 'vitest'
import { BlockCourier } from '../src/engine/block-courier.ts'
import { blockName } from '../src/engine/block-manager.ts'
import { createEngine } from '../src/engine/create-engine.ts'
import type { Engine, EngineRequest } from '../src/engine/engine.ts'
import { type Answer, bitsOf, generate, requestOf } from './running.ts'
import { packedScores, TestFolders, tinyModel } from './tiny-models.ts'

const folders = new TestFolders()
const model = tinyModel('qwen3_moe', 1)
afterAll(() => {
  model.dispose()
  folders.remove()
})

const blockBytes = kvElementsPerToken(model.config) * 4 * 4
async function memoryStore(bytes = 2 ** 24): Promise<KVStore> {
  const table = { type: 'native' as const, cpu: { num_bytes: bytes }, disk: null }
  return memoryKVStore.create({
    config: { 'inference.kv_cache_offload': table },
    run: { roles: ['inference'], workingDirectory: '/', numericsProfile: 'fp32', resolved: {} },
    needs: {},
    log: silentLogger,
    signal: new AbortController().signal,
  })
}

/** An engine with room for 24 blocks. */
const smallEngine = (store: KVStore | null, log = silentLogger): Promise<Engine> =>
  createEngine(
    {
      modelFolder: folders.model('qwen3_moe', 1),
      thread: 'here',
      blockSize: 4,
      kvBytes: 24 * blockBytes,
      maxModelLen: 80,
      routedExperts: true,
      store,
      slots: { leaving: 64, coming: 3 },
    },
    log,
  )

const prompt = someIds(33, 61, 77)
const ask = (engine: Engine, changes: Partial<EngineRequest> = {}) =>
  generate(engine, requestOf(prompt, { routedExpertsFrom: 0, ...changes }))
const pushOut = async (engine: Engine) => {
  for (let other = 0; other < 6; other++) await generate(engine, requestOf(someIds(60, 61, other + 100)))
}
function expectWell(ids: readonly number[], { tokens, logprobs, end }: Answer): void {
  const { logprobs: expected, routes } = packedScores(model, [...ids, ...tokens])
  expect(bitsOf(logprobs)).toEqual(bitsOf(expected.slice(ids.length - 1)))
  const data = end?.routedExperts?.data ?? new Uint8Array(0)
  expect([...data]).toEqual([...(routes?.data.subarray(0, data.length) ?? [])])
  expect(end?.routedExperts?.shape[0]).toBe(ids.length + tokens.length - 1)
}

/** Another method in the place of one. */
function replaced<Name extends 'lookup' | 'put' | 'get'>(
  name: Name,
  make: (old: KVStore[Name]) => KVStore[Name],
): (store: KVStore) => void {
  return (store) => {
    store[name] = make(store[name].bind(store) as KVStore[Name])
  }
}

test('blocks come back through fewer slots than there are blocks, with their rows of experts', async () => {
  const store = await memoryStore()
  const engine = await smallEngine(store)
  expectWell(prompt, await ask(engine))
  await pushOut(engine)
  const back = await ask(engine)
  expect([back.prompt?.cachedTokens, back.prompt?.storedTokens]).toEqual([32, 32])
  expectWell(prompt, back)
  const again = await ask(engine)
  expect([again.prompt?.cachedTokens, again.prompt?.storedTokens]).toEqual([32, 0])
  expect(engine.stats().storeHits).toBe(32)
  // known-faults 95: another salt finds nothing anywhere.
  await pushOut(engine)
  expect((await ask(engine, { salt: 'v2' })).prompt?.cachedTokens).toBe(0)
  await engine.dispose()
  await store.dispose()
})

test('what the store keeps outlives a pause and a reset that is not for it, and goes with one that is', async () => {
  const store = await memoryStore()
  const engine = await smallEngine(store)
  await ask(engine)
  await pushOut(engine)
  // known-faults 101: weights did not change, so nothing is dropped.
  await engine.pause('keep')
  await engine.resume()
  await engine.resetPrefixCache({ isExternal: false })
  expect((await ask(engine)).prompt?.storedTokens).toBe(32)
  await pushOut(engine)
  await engine.resetPrefixCache({ isExternal: true })
  expect((await ask(engine)).prompt?.storedTokens).toBe(0)
  expect(store.stats().blocks).toBe(0)
  await engine.dispose()
})

test.for([
  {
    title: 'that loses every block',
    change: replaced('get', () => async (requests) => requests.map(() => ({ status: 'miss', reason: 'absent' }))),
    stored: 0,
  },
  { title: 'that throws at put', change: replaced('put', () => () => Promise.reject(new Error('full'))), stored: 0 },
  {
    title: 'that throws at lookup',
    change: replaced('lookup', () => () => {
      throw new Error('gone')
    }),
    stored: 0,
  },
  { title: 'that throws at get', change: replaced('get', () => () => Promise.reject(new Error('gone'))), stored: 0 },
  { title: 'that never says yes', change: replaced('lookup', () => (keys) => keys.map(() => 'not-yet')), stored: 0 },
  {
    // known-faults 98: one byte of the third block.
    title: 'that gives back another byte',
    change: (store: KVStore) => {
      const get = store.get.bind(store)
      let calls = 0
      store.get = async (requests) => {
        const answers = await get(requests)
        for (const { into } of requests) if (++calls === 3) into[5] = (into[5] as number) ^ 1
        return answers
      }
    },
    stored: 8,
  },
  {
    title: 'that forgets the experts',
    change: (store: KVStore) => {
      const get = store.get.bind(store)
      store.get = async (requests) =>
        (await get(requests)).map((answer) => {
          if (answer.status !== 'hit') return answer
          const { experts: _, ...rest } = answer
          return rest
        })
    },
    stored: 0,
  },
  {
    title: 'that is slow and late',
    change: (store: KVStore) => {
      const [get, lookup] = [store.get.bind(store), store.lookup.bind(store)]
      let calls = 0
      store.lookup = (keys) => (++calls % 3 === 0 ? lookup(keys) : keys.map(() => 'not-yet'))
      store.get = async (requests) => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return get(requests)
      }
    },
    stored: 32,
  },
])('a store $title: the request is served all the same', async ({ change, stored }) => {
  const store = await memoryStore()
  const log = recordingLogger()
  const engine = await smallEngine(store, log)
  await ask(engine)
  change(store)
  await pushOut(engine)
  // Nobody waits for a request that waits for the store.
  const [back, other] = await Promise.all([ask(engine), generate(engine, requestOf(someIds(5, 61, 3), { routedExpertsFrom: 0 }))])
  expectWell(prompt, back)
  expectWell(someIds(5, 61, 3), other)
  expect(back.prompt?.storedTokens).toBe(stored)
  expect(log.lines.length).toBeLessThanOrEqual(1)
  await engine.dispose()
})

test('an answer that comes after its request was aborted goes nowhere', async () => {
  const store = await memoryStore()
  const engine = await smallEngine(store)
  await ask(engine)
  await pushOut(engine)
  const get = store.get.bind(store)
  let release: () => void = () => undefined
  let asked: () => void = () => undefined
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  store.get = async (requests) => {
    asked()
    await new Promise<void>((resolve) => {
      release = resolve
    })
    return get(requests)
  }
  const request = requestOf(prompt)
  const ending = generate(engine, request)
  await isAsked
  engine.abort([request.id])
  expect((await ending).end?.reason).toBe('abort')
  release()
  store.get = get
  await pushOut(engine)
  expectWell(prompt, await ask(engine))
  expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, usedBlocks: 0 })
  await engine.dispose()
})

test('imported blocks: those that are whole and of this prompt are used, the others computed; the first token is given out', async () => {
  const taken: EngineRequest['imported'] & object = { blocks: [], firstToken: null }
  const store = await memoryStore()
  const put = store.put.bind(store)
  const blocks: { key: Parameters<KVStore['put']>[0][number]['key']; block: Parameters<KVStore['put']>[0][number]['block'] }[] = []
  store.put = (entries) => {
    for (const { key, block } of entries) blocks.push({ key, block: { ...block, bytes: Uint8Array.from(block.bytes) } })
    return put(entries)
  }
  const source = await smallEngine(store)
  const { tokens } = await ask(source)
  await pushOut(source)
  await source.dispose()
  const engine = await smallEngine(null)
  const id = tokens[0] as number
  const firstToken = { id, logprob: -1.5, version: 3, contextVersionMin: 2 }
  const whole = await ask(engine, { imported: { blocks, firstToken } })
  expect(whole.prompt).toMatchObject({ cachedTokens: 32, storedTokens: 32 })
  expect([whole.tokens[0], whole.logprobs[0], whole.versions[0], whole.contextVersionsMin[0]]).toEqual([id, -1.5, 3, 2])
  expect(whole.tokens.length).toBe(8)
  expectWell([...prompt, id], { ...whole, tokens: whole.tokens.slice(1), logprobs: whole.logprobs.slice(1) })
  await engine.resetPrefixCache({ isExternal: true })
  // One wrong byte in the third block.
  const hit = blocks.find(({ key }) => key.hash.join() === (blocks[2]?.key.hash.join() ?? '')) as (typeof blocks)[number]
  const torn = blocks.map((entry) => (entry === hit ? { ...entry, block: { ...entry.block, checksum: entry.block.checksum ^ 1 } } : entry))
  const partly = await ask(engine, { imported: { ...taken, blocks: torn } })
  expect(partly.prompt?.cachedTokens).toBeLessThan(32)
  expectWell(prompt, partly)
  await engine.resetPrefixCache({ isExternal: true })
  expect((await ask(engine, { imported: { ...taken, blocks }, tenant: 'another' })).prompt?.cachedTokens).toBe(0)
  // A first token that ends the answer ends it, with the rows of the prompt.
  const ended = await ask(engine, { imported: { blocks, firstToken }, sampling: { ...requestOf([1]).sampling, stopIds: [id] } })
  expect([ended.tokens, ended.end?.reason, ended.end?.stopId, ended.end?.routedExperts?.shape[0]]).toEqual([[id], 'stop', id, 33])
  await engine.dispose()
})

// known-faults G94: prefix cache, KV store, rows of experts, second layouts of the weights, and whatever else an engine may keep.
test.each(tinyFamilies)('%s: after new weights and a reset an engine answers as one that never had others', async (family) => {
  const model = tinyModel(family, 1)
  const kvBytes = 24 * 4 * 4 * kvElementsPerToken(model.config)
  model.dispose()
  const stores = [await memoryStore(), await memoryStore()]
  const started = (store: KVStore | undefined, modelFolder: string) =>
    createEngine({
      ...{ modelFolder, kvBytes, thread: 'here', blockSize: 4, maxModelLen: 80, routedExperts: family !== 'qwen3' },
      ...{ store: store ?? null, slots: { leaving: 64, coming: 32 } },
    })
  const answers = async (engine: Engine) => {
    const prompts = [someIds(33, 61, 5), someIds(60, 61, 6), someIds(33, 61, 5), someIds(70, 61, 7), [...someIds(33, 61, 5), 1, 2, 3]]
    const all = []
    for (const [index, prompt] of prompts.entries()) {
      const changes = {
        salt: 'one',
        logprobs: 2,
        ...(family === 'qwen3' ? {} : { routedExpertsFrom: 0 }),
        ...(index === 4 ? { promptLogprobs: 1 } : {}),
      }
      const {
        tokens,
        logprobs,
        candidates,
        prompt: event,
        end,
      } = await generate(engine, requestOf(prompt, { ...changes, sampling: { seed: BigInt(index) } }))
      const { cachedTokens, storedTokens, promptLogprobs } = event ?? {}
      all.push({ tokens, logprobs: bitsOf(logprobs), candidates, cachedTokens, storedTokens, promptLogprobs, experts: end?.routedExperts })
    }
    return all
  }
  const old = await started(stores[0], folders.model(family, 1))
  await answers(old)
  const before = await answers(old)
  expect(before.some(({ cachedTokens = 0 }) => cachedTokens > 0)).toBe(true)
  expect(before.some(({ storedTokens = 0 }) => storedTokens > 0)).toBe(true)
  await old.prepareWeights({ version: 1, path: folders.model(family, 2) })
  await old.exchangeWeights(1)
  await old.resetPrefixCache({ isExternal: true })
  const fresh = await started(stores[1], folders.model(family, 2))
  const after = await answers(old)
  expect(after).toEqual(await answers(fresh))
  expect(after[0]?.logprobs).not.toEqual(before[0]?.logprobs)
  for (const each of [old, fresh]) await each.dispose()
})

// known-faults G100: many calls at once, of which a twentieth fails.
test('512 puts and 512 lookups of 32 blocks at once, a twentieth of which fail: each is answered once, with its own blocks, and every slot is free again', async () => {
  const [calls, blocks, slotBytes] = [512, 32, 64]
  const layout = {
    buffer: new SharedArrayBuffer((calls + 8) * blocks * slotBytes),
    slotBytes,
    leaving: calls * blocks,
    coming: 8 * blocks,
  }
  const memory = new Uint8Array(layout.buffer)
  const store = await memoryStore()
  const failing = (name: 'put' | 'get') => {
    const call = store[name].bind(store) as (list: never) => Promise<never>
    let count = 0
    store[name] = (async (list: never) => {
      await new Promise((resolve) => setTimeout(resolve, count % 7))
      if (count++ % 20 === 0) throw new Error('busy')
      return call(list)
    }) as never
  }
  failing('put')
  failing('get')
  const nameOf = (call: number, block: number) =>
    blockName('', '', new Uint8Array(createHash('sha256').update(`${call}.${block}`).digest()))
  const written: number[] = []
  const fetched = new Map<number, number>()
  let hasEnded: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    hasEnded = resolve
  })
  const log = recordingLogger()
  const courier = new BlockCourier({
    ...{ store, layout, profile: 'fp32', format: 'f', log },
    onWritten: (slots) => written.push(...slots),
    onFetched({ handle, blocks: found }) {
      expect(fetched.has(handle)).toBe(false)
      fetched.set(handle, found.length)
      for (const [block, { slot }] of found.entries())
        expect([...memory.subarray(slot * slotBytes, slot * slotBytes + 2)]).toEqual([handle % 251, block])
      // The engine reads them, and gives their slots back.
      courier.slotsRead(found.map(({ slot }) => slot))
      if (fetched.size === calls) hasEnded()
    },
  })
  const versions = { min: 0, max: 0 }
  const puts = Array.from({ length: calls }, (_, call) =>
    courier.put(
      Array.from({ length: blocks }, (_, block) => {
        const slot = call * blocks + block
        memory.set([call % 251, block], slot * slotBytes)
        return { slot, name: nameOf(call, block), versions, experts: null }
      }),
    ),
  )
  await Promise.all(puts)
  expect(new Set(written).size).toBe(calls * blocks)
  expect(written).toHaveLength(calls * blocks)
  expect(store.stats().blocks).toBe((calls - 26) * blocks)
  for (let call = 0; call < calls; call++)
    courier.look({ handle: call, names: Array.from({ length: blocks }, (_, block) => nameOf(call, block)) }, [])
  await ended
  const counts = [...fetched.values()]
  // All blocks of a call or none: of 486 calls that the store has, a twentieth fails again.
  expect(counts.filter((count) => count === blocks).length).toBe(486 - Math.ceil(486 / 20))
  expect(counts.filter((count) => count === 0).length).toBe(26 + Math.ceil(486 / 20))
  expect(courier.inFlight).toBe(0)
  expect(log.lines.length).toBe(1)
})
