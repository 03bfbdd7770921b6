import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FakeService, startFake } from '../__fixtures__/start-fake.ts'

let service: FakeService
beforeEach(async () => {
  service = await startFake()
})
afterEach(() => service.close())

const start = (version: number, path: string) => service.post('/start_weight_update', { version, path })
const flip = (version: number) => service.post('/update_weights', { update_info: { version } })
const exchange = (version: number) => service.post('/update_weights', { update_info: { version, between_steps: true } })
const finish = (version: number) => service.post('/finish_weight_update', { weight_version: String(version) })
const served = async () => ((await (await service.get('/weight_info')).json()) as { weight_version: string }).weight_version
const said = async (response: Response) => ((await response.json()) as { error: { message: string } }).error.message

describe('a weight update', () => {
  it('prepares without a pause, flips in one, and is over', async () => {
    expect((await start(1, service.version(1))).status).toBe(200)
    const early = await flip(1)
    expect([early.status, await said(early)]).toEqual([409, expect.stringContaining('pause')])
    await service.post('/pause?mode=keep')
    expect((await flip(1)).status).toBe(200)
    expect((await finish(1)).status).toBe(200)
    await service.post('/resume')
    expect(await served()).toBe('1')
    expect(service.engine.calls).toEqual(['prepare 1', 'pause keep', 'flip 1', 'finish 1', 'resume'])
  })

  it('answers every step that comes again as done, and does it once', async () => {
    const path = service.version(1)
    const steps = [
      () => start(1, path),
      () => service.post('/pause?mode=keep'),
      () => flip(1),
      () => finish(1),
      () => service.post('/resume'),
    ]
    for (const step of steps) for (let time = 0; time < 3; time++) expect((await step()).status).toBe(200)
    // A reply that was lost long ago.
    expect((await start(1, path)).status).toBe(200)
    expect((await flip(1)).status).toBe(200)
    expect(service.engine.calls.filter((call) => call.startsWith('prepare') || call.startsWith('flip'))).toEqual(['prepare 1', 'flip 1'])
  })

  it('answers several clients that ask at once as one', async () => {
    const path = service.version(1)
    await service.post('/pause?mode=keep')
    const answers = await Promise.all([start(1, path), start(1, path), flip(1), flip(1), finish(1), finish(1)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    expect(await served()).toBe('1')
  })

  it('answers 409 for another version than the prepared one, and for a finish of another', async () => {
    await start(2, service.version(2))
    await service.post('/pause?mode=keep')
    for (const version of [1, 3]) expect((await flip(version)).status).toBe(409)
    expect((await finish(2)).status).toBe(409)
    expect(await served()).toBe('0')
    expect((await flip(2)).status).toBe(200)
  })

  it('leaves the old version serving when it fails at any step, and works the next time', async () => {
    const path = service.version(1)
    await service.post('/pause?mode=keep')
    service.engine.failNext('prepare', new TrilithonError('WEIGHTS_INVALID', 'the checksum of lm_head differs'))
    const failed = await start(1, path)
    expect([failed.status, await said(failed)]).toEqual([400, expect.stringContaining('WEIGHTS_INVALID: the checksum of lm_head differs')])
    expect((await flip(1)).status).toBe(409)
    await start(1, path)
    service.engine.failNext('flip', new Error('a fault of ours'))
    expect((await flip(1)).status).toBe(500)
    expect(await served()).toBe('0')
    expect((await flip(1)).status).toBe(200)
    expect(await served()).toBe('1')
  })

  it('reads a version again whose files have changed before the flip, and refuses other weights under the number that serves', async () => {
    const path = service.version(1)
    await start(1, path)
    appendFileSync(join(path, 'weights.bin'), 'more')
    await start(1, path)
    expect(service.engine.calls).toEqual(['prepare 1', 'prepare 1'])
    await service.post('/pause?mode=keep')
    await flip(1)
    expect((await start(1, path)).status).toBe(200)
    const elsewhere = await start(1, service.version(1))
    expect(elsewhere.status).toBe(409)
    appendFileSync(join(path, 'weights.bin'), 'and more')
    expect((await start(1, path)).status).toBe(409)
    rmSync(path, { recursive: true })
    // Tidied away by its publisher: a late repetition is no other version.
    expect((await start(1, path)).status).toBe(200)
  })

  it('that goes back ends what runs and forgets all KV, because the number may come to mean other weights', async () => {
    await service.post('/pause?mode=keep')
    for (const version of [5, 3]) {
      await start(version, service.version(version))
      await flip(version)
    }
    expect(await served()).toBe('3')
    expect(service.engine.calls).toContain('reset all')
    expect(service.engine.calls.filter((call) => call === 'reset all')).toHaveLength(1)
    // 5 has served before: what is called 5 now is new.
    await start(4, service.version(4))
    await flip(4)
    expect(service.engine.calls.filter((call) => call === 'reset all')).toHaveLength(2)
  })

  it('leaves pause and resume to the engine where it is told to, and says how long it took no step', async () => {
    const path = service.version(1)
    expect((await exchange(1)).status).toBe(409)
    expect(await (await start(1, path)).json()).toMatchObject({ between_steps: true })
    expect((await exchange(2)).status).toBe(409)
    // The second had no answer the first time, perhaps.
    for (let time = 0; time < 2; time++)
      expect(await (await exchange(1)).json()).toEqual({ status: 'ok', paused_seconds: 0.002, step_seconds: 0.01 })
    expect((await finish(1)).status).toBe(200)
    expect(await served()).toBe('1')
    expect(service.engine.calls).toEqual(['prepare 1', 'exchange 1', 'resume', 'finish 1'])
  })

  it('pauses for it where the numbers go back, because the caches are emptied before the next step', async () => {
    for (const version of [5, 3]) {
      await start(version, service.version(version))
      expect((await exchange(version)).status).toBe(200)
    }
    expect(service.engine.calls).toEqual(['prepare 5', 'exchange 5', 'prepare 3', 'pause keep', 'flip 3', 'reset all', 'resume'])
    await start(4, service.version(4))
    service.engine.failNext('flip', new Error('a fault of ours'))
    expect((await exchange(4)).status).toBe(500)
    expect([await served(), service.engine.stats().isPaused]).toEqual(['3', false])
  })

  it("does all three for prime-rl's weight_dir, again and again", async () => {
    const path = service.version(7)
    const post = (weight_dir: string | null) => service.post('/update_weights', { weight_dir })
    expect((await post(path)).status).toBe(409)
    await service.post('/pause?mode=keep&clear_cache=false')
    for (let time = 0; time < 2; time++) expect(await (await post(path)).json()).toEqual({ status: 'ok' })
    await service.post('/resume')
    expect((await post(path)).status).toBe(200)
    expect(await served()).toBe('7')
    expect(service.engine.calls.filter((call) => call.startsWith('flip'))).toEqual(['flip 7'])
    expect((await post(null)).status).toBe(400)
    const nameless = await post(service.folder)
    expect([nameless.status, await said(nameless)]).toEqual([400, expect.stringContaining('step_N')])
  })

  it('refuses what it is not', async () => {
    for (const [path, body] of [
      ['/start_weight_update', {}],
      ['/start_weight_update', { version: 1, path: 'relative' }],
      ['/start_weight_update', { version: -1, path: '/x' }],
      ['/start_weight_update', { version: 1, path: '/x', more: 1 }],
      ['/update_weights', { update_info: {} }],
      ['/update_weights', { update_info: { version: 1, names: [] } }],
      ['/update_weights', { update_info: { version: 1, between_steps: 'yes' } }],
      ['/finish_weight_update', { weight_version: 'newest' }],
      ['/weight_checker', { action: 'reset' }],
      ['/pause', { mode: 'keep' }],
      ['/reset_prefix_cache?reset_running_requests=true', undefined],
      ['/pause?mode=keep&made=up', undefined],
    ] as const)
      expect([path, (await service.post(path, body)).status]).toEqual([path, 400])
  })

  it('has the label that is its version, and no other', async () => {
    expect((await service.post('/update_weight_version', { new_version: '42' })).status).toBe(409)
    expect(await (await service.post('/update_weight_version', { new_version: '0' })).json()).toEqual({ success: true, new_version: '0' })
  })
})

/** A client whose calls or replies get lost: it repeats each until it has a reply of success. */
it('converges whatever calls and replies are lost', { timeout: 15_000 }, async () => {
  let version = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('call', 'reply', 'none', 'twice'), { minLength: 12, maxLength: 12 }), async (losses) => {
      version += 1
      const path = service.version(version)
      const fates = [...losses]
      const insist = async (call: () => Promise<Response>) => {
        for (;;) {
          const fate = fates.shift() ?? 'none'
          if (fate === 'call') continue
          const responses = fate === 'twice' ? await Promise.all([call(), call()]) : [await call()]
          if (fate === 'reply') continue
          expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200))
          return
        }
      }
      await insist(() => start(version, path))
      if (version % 2 === 0) {
        await insist(() => service.post('/pause?mode=keep'))
        await insist(() => flip(version))
        await insist(() => service.post('/resume'))
      } else await insist(() => exchange(version))
      await insist(() => finish(version))
      expect(await served()).toBe(String(version))
      expect(service.engine.stats()).toMatchObject({ version, isPaused: false })
    }),
    { numRuns: 15 },
  )
})

it('resumes after a flip that is under way, not in the middle of it', async () => {
  await start(1, service.version(1))
  await service.post('/pause?mode=keep')
  await Promise.all([flip(1), service.post('/resume')])
  expect(service.engine.calls.slice(-2)).toEqual(['flip 1', 'resume'])
})

it('pauses, waits and aborts as it is told, and holds what arrives meanwhile', async () => {
  await service.post('/pause?mode=keep')
  const held = service.post('/inference/v1/generate', { token_ids: [1], sampling_params: { max_tokens: 3 } })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(service.engine.stats().generatedTokens).toBe(0)
  expect(await (await service.get('/is_paused')).json()).toEqual({ is_paused: true })
  expect(await (await service.get('/load')).json()).toEqual({ server_load: 1 })
  await service.post('/resume')
  expect(((await (await held).json()) as { usage: object }).usage).toMatchObject({ completion_tokens: 3 })
  const running = service.post('/inference/v1/generate', { token_ids: [1], sampling_params: { max_tokens: 100 } })
  while (service.engine.open === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  await service.post('/pause?mode=wait')
  expect(service.engine.open).toBe(0)
  expect(((await (await running).json()) as { usage: object }).usage).toMatchObject({ completion_tokens: 100 })
})

it.each(['generate-tokens-mine', 'mine'])('ends requests by their id %s', async (id) => {
  const slow = await startFake({ stepMs: 5 })
  const body = { token_ids: [1], sampling_params: { n: 2, max_tokens: 1000 }, request_id: 'mine' }
  const answer = slow.post('/inference/v1/generate', body)
  while (slow.engine.stats().generatedTokens < 2) await new Promise((resolve) => setTimeout(resolve, 2))
  expect((await slow.post('/abort_requests', { request_ids: ['unknown', id] })).status).toBe(200)
  const json = (await (await answer).json()) as { choices: { finish_reason: string }[] }
  expect(json.choices.map(({ finish_reason }) => finish_reason)).toEqual(['abort', 'abort'])
  await slow.close()
})

it('forgets the prefix cache when told, and keeps it otherwise', async () => {
  const token_ids = Array.from({ length: 40 }, () => 1)
  const cached = async () => {
    const response = await service.post('/inference/v1/generate', { token_ids, sampling_params: { max_tokens: 1 }, cache_salt: 'v1' })
    return ((await response.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } }).usage.prompt_tokens_details
      .cached_tokens
  }
  expect([await cached(), await cached()]).toEqual([0, 32])
  await service.post('/reset_prefix_cache?reset_external=true')
  expect(await cached()).toBe(0)
  await service.post('/pause?mode=keep&clear_cache=true')
  await service.post('/resume')
  expect(await cached()).toBe(0)
})
