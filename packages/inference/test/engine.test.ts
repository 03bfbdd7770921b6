/** The engine as the main thread sees it. */
import { silentLogger } from '@trilithon/core'
import { liveTensors } from '@trilithon/tensor'
import { someIds } from '@trilithon/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEngine } from '../src/engine/create-engine.ts'
import type { Engine, EngineEvent, SamplingOptions } from '../src/engine/engine.ts'
import { countSlots, hostOptions, sizeCache } from '../src/engine/engine-options.ts'
import { EngineProxy, type ProxyPort } from '../src/engine/engine-proxy.ts'
import { SharedStats } from '../src/engine/shared-stats.ts'
import { generate, requestOf } from './running.ts'
import { TestFolders, tinyModel } from './tiny-models.ts'

const folders = new TestFolders()
let engine: Engine
beforeAll(async () => {
  engine = await createEngine({ modelFolder: folders.model('qwen3', 1, { eos_token_id: [60, 59] }), thread: 'here', maxModelLen: 64 })
})
afterAll(async () => {
  await engine.dispose()
  folders.remove()
})

describe('requests', () => {
  test.for([
    { field: 'promptIds', changes: {}, prompt: [] },
    { field: 'promptIds', changes: {}, prompt: someIds(64, 61) },
    { field: 'promptIds[1]', changes: {}, prompt: [0, 61] },
    { field: 'logprobs', changes: { logprobs: -1 }, prompt: [0] },
    { field: 'routedExpertsFrom', changes: { routedExpertsFrom: 0.5 }, prompt: [0] },
    ...(
      [
        ['temperature', [-1, Number.NaN, 1e-9, Number.POSITIVE_INFINITY]],
        ['topK', [-1, 1.5]],
        ['topP', [0, 1.1, Number.NaN]],
        ['minP', [-0.1, 2]],
        ['seed', [1n << 63n]],
        ['maxTokens', [0, -3, 1.5]],
        ['minTokens', [-1, 99]],
        ['stopIds', [[61], [-1]]],
      ] as const
    ).flatMap(([name, values]) =>
      values.map((value) => ({
        field: `sampling.${name}`,
        changes: { sampling: { [name]: value } as Partial<SamplingOptions> },
        prompt: [0],
      })),
    ),
    {
      field: 'imported.firstToken.id',
      changes: { imported: { blocks: [], firstToken: { id: 61, logprob: 0, version: 0, contextVersionMin: 0 } } },
      prompt: [0],
    },
  ])('what cannot be served is refused with its field: $field $changes', ({ field, changes, prompt }) => {
    expect(() => engine.submit(requestOf(prompt, changes), () => undefined)).toThrowError(
      expect.objectContaining({ code: 'REQUEST_INVALID', path: field }),
    )
  })

  test('an id that is under way is refused, and free again afterwards', async () => {
    const request = requestOf([1, 2])
    const first = generate(engine, request)
    await expect(generate(engine, request)).rejects.toMatchObject({ code: 'REQUEST_INVALID', path: 'id' })
    await first
    await generate(engine, request)
  })

  test('no event comes during the call, and they come in order', async () => {
    let isInside = true
    const kinds: EngineEvent['kind'][] = []
    const done = new Promise<void>((resolve) =>
      engine.submit(requestOf([1, 2, 3]), (event) => {
        expect(isInside).toBe(false)
        kinds.push(event.kind)
        if (event.kind === 'end') resolve()
      }),
    )
    isInside = false
    await done
    expect(kinds).toEqual(['prompt', ...new Array(8).fill('tokens'), 'end'])
  })

  test('the end tokens of the model end an answer where they should', async () => {
    expect(engine.info.endIds).toEqual([60, 59])
    const sampling = { maxTokens: 60, stopsAtEnd: true, temperature: 3 }
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, seed) => generate(engine, requestOf([1], { sampling: { ...sampling, seed: BigInt(seed) } }))),
    )
    const stopped = answers.filter(({ end }) => end?.reason === 'stop')
    expect(stopped.length).toBeGreaterThan(0)
    for (const { tokens, end } of stopped) {
      expect([60, 59]).toContain(tokens.at(-1))
      expect(end?.stopId).toBeNull()
    }
    for (const { tokens } of answers) expect(tokens.slice(0, -1).some((id) => id >= 59)).toBe(false)
  })

  test('whatever is asked for, an answer is whole and nothing is left behind', async () => {
    const sampling = fc.record({
      temperature: fc.constantFrom(0, 0.3, 1, 2),
      topK: fc.nat(70),
      topP: fc.double({ min: 0.01, max: 1, noNaN: true }),
      minP: fc.double({ min: 0, max: 1, noNaN: true }),
      seed: fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n }),
      maxTokens: fc.integer({ min: 5, max: 20 }),
      minTokens: fc.nat(5),
      stopIds: fc.array(fc.nat(58), { maxLength: 9 }),
      stopsAtEnd: fc.boolean(),
    })
    const request = fc.record({
      ids: fc.array(fc.nat(60), { minLength: 1, maxLength: 30 }),
      sampling,
      salt: fc.string({ maxLength: 3 }),
      logprobs: fc.option(fc.nat(70)),
      promptLogprobs: fc.option(fc.nat(3)),
      priority: fc.integer({ min: -2, max: 2 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), async (requests) => {
        const answers = await Promise.all(requests.map(({ ids, ...rest }) => generate(engine, requestOf(ids, rest))))
        for (const [index, { tokens, end, kinds, candidates, prompt }] of answers.entries()) {
          const { sampling: rules, logprobs, ids, promptLogprobs } = requests[index] as (typeof requests)[number]
          expect(['stop', 'length']).toContain(end?.reason)
          expect(tokens.length).toBeGreaterThanOrEqual(Math.max(1, rules.minTokens))
          expect(tokens.length).toBeLessThanOrEqual(rules.maxTokens)
          expect([kinds[0], kinds.at(-1), kinds.filter((kind) => kind !== 'tokens').length]).toEqual(['prompt', 'end', 2])
          for (const list of candidates) expect(list.length).toBe(logprobs === null || logprobs === 0 ? 0 : 1 + Math.min(61, logprobs))
          expect(prompt?.promptLogprobs?.length).toBe(promptLogprobs === null ? undefined : ids.length)
        }
        expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, usedBlocks: 0 })
      }),
      { numRuns: 25 },
    )
  })
})

describe('pauses', () => {
  const long = () => requestOf([1, 2, 3], { sampling: { maxTokens: 40 } })
  const ticks = () => new Promise((resolve) => setTimeout(resolve, 15))

  test('keep holds requests, those that arrive as well; resume lets them go on with the same tokens', async () => {
    const expected = await generate(engine, long())
    let seen = 0
    let paused: Promise<void> | undefined
    const answer = generate(engine, long(), ({ tokens }) => {
      seen = tokens.length
      if (seen === 5) paused = engine.pause('keep')
    })
    while (paused === undefined) await ticks()
    await paused
    expect(engine.stats().isPaused).toBe(true)
    const held = generate(engine, long())
    const atPause = seen
    await ticks()
    expect([seen, engine.stats().isPaused, engine.stats().idleMs]).toEqual([atPause, true, 0])
    await engine.resume()
    expect((await answer).tokens).toEqual(expected.tokens)
    expect((await held).tokens).toEqual(expected.tokens)
    expect(engine.stats().isPaused).toBe(false)
  })

  test('wait lets requests finish and holds those that arrive; abort ends them', async () => {
    const answers = [generate(engine, long()), generate(engine, long())]
    const paused = engine.pause('wait')
    const late = generate(engine, long())
    await paused
    expect(await Promise.all(answers.map(async (answer) => (await answer).end?.reason))).toEqual(['length', 'length'])
    expect(engine.stats()).toMatchObject({ running: 0, waiting: 1 })
    await engine.pause('abort')
    expect((await late).end?.reason).toBe('abort')
    const held = generate(engine, long())
    await ticks()
    await engine.resume()
    expect((await held).end?.reason).toBe('length')
  })

  test('a resume ends a wait that is still going on', async () => {
    const answer = generate(engine, long())
    const paused = engine.pause('wait')
    await engine.resume()
    await paused
    expect((await answer).tokens.length).toBe(40)
  })
})

describe('starting and ending', () => {
  test('a folder without a model, and sizes that do not fit, are refused before anything runs', async () => {
    const { tensors } = liveTensors()
    await expect(createEngine({ modelFolder: '/nowhere', thread: 'here' })).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' })
    const modelFolder = folders.model('qwen3', 1)
    await expect(createEngine({ modelFolder, thread: 'here', maxModelLen: 513 })).rejects.toMatchObject({ code: 'CONFIG_VALUE_INVALID' })
    await expect(createEngine({ modelFolder, thread: 'here', kvBytes: 100 })).rejects.toMatchObject({ path: 'engine.kvBytes' })
    await expect(createEngine({ modelFolder, thread: 'here', blockSize: 0 })).rejects.toMatchObject({ path: 'engine.blockSize' })
    expect(liveTensors().tensors).toBe(tensors)
  })

  test('the longest sequence follows from the memory where nobody says it', () => {
    const model = tinyModel('qwen3', 1)
    const options = hostOptions({ modelFolder: '', kvBytes: 20 * 16 * 32 * 4 })
    expect(sizeCache(model.config, options)).toEqual({ blocks: 20, maxModelLen: 320 })
    expect(sizeCache(model.config, hostOptions({ modelFolder: '', maxRunning: 2 }))).toEqual({ blocks: 64, maxModelLen: 512 })
    model.dispose()
  })

  test('slots are as many as their bytes allow, and none leave without a store', () => {
    const counts = (slotBytes: number, hasStore: boolean) => countSlots({ ...hostOptions({ modelFolder: '' }), hasStore }, slotBytes)
    expect(counts(1024, true)).toEqual({ leaving: 64, coming: 16 })
    expect(counts(3 * 2 ** 20, true)).toEqual({ leaving: 42, coming: 10 })
    expect(counts(50 * 2 ** 20, true)).toEqual({ leaving: 32, coming: 4 })
    expect(counts(1024, false).leaving).toBe(0)
  })

  test('disposed with requests under way: each of them is told, later calls are refused, no tensor is left', async () => {
    const { tensors } = liveTensors()
    const own = await createEngine({ modelFolder: folders.model('qwen3', 1), thread: 'here', maxModelLen: 64 })
    const answer = generate(own, requestOf([1], { sampling: { maxTokens: 60 } }))
    await own.dispose()
    await own.dispose()
    expect((await answer).end).toMatchObject({ reason: 'error', error: { code: 'ENGINE_FAILED' } })
    await own.ended
    await expect(own.resume()).rejects.toMatchObject({ code: 'ENGINE_FAILED' })
    expect(() => own.submit(requestOf([1]), () => undefined)).toThrowError(expect.objectContaining({ code: 'ENGINE_FAILED' }))
    expect(liveTensors().tensors).toBe(tensors)
  })

  test('a fault in the thread of the model ends the engine, and everyone is told', async () => {
    const own = await createEngine({ modelFolder: folders.model('qwen3', 1), thread: 'here', maxModelLen: 64 })
    const running = generate(own, requestOf([1, 2], { sampling: { maxTokens: 60 } }))
    // What no caller may send: the salt is no text.
    const faulty = generate(own, { ...requestOf([1, 2, ...someIds(30, 61)]), salt: undefined as never })
    for (const answer of [running, faulty]) expect((await answer).end).toMatchObject({ reason: 'error', error: { code: 'ENGINE_FAILED' } })
    await expect(own.ended).rejects.toMatchObject({ code: 'ENGINE_FAILED' })
    await expect(own.pause('keep')).rejects.toMatchObject({ code: 'ENGINE_FAILED' })
    await own.dispose()
  })

  // known-faults 112: a failure of the other thread reaches everyone who waits for it.
  test.for([
    { title: 'throws', error: new Error('no memory') },
    { title: 'ends without a word', error: undefined },
  ])('a thread that $title: requests, calls and `ended` are told', async ({ error }) => {
    let end: (error: unknown) => void = () => undefined
    const port: ProxyPort = {
      post: () => undefined,
      listen(onMessage, onEnd) {
        end = onEnd
        queueMicrotask(() =>
          onMessage({ kind: 'started', info: engine.info, shared: { stats: new SharedArrayBuffer(SharedStats.bytes), slots: null } }),
        )
      },
      stop: () => undefined,
      close: async () => undefined,
    }
    const proxy = await EngineProxy.start(port, { store: null, log: silentLogger })
    const answer = generate(proxy, requestOf([1]))
    const call = proxy.resume()
    end(error)
    await expect(call).rejects.toMatchObject({ code: 'ENGINE_FAILED' })
    await expect(proxy.ended).rejects.toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringContaining(error?.message ?? 'ended') })
    expect(await answer).toMatchObject({ kinds: ['prompt', 'end'], end: { reason: 'error', error: { code: 'ENGINE_FAILED' } } })
    await proxy.dispose()
  })
})
