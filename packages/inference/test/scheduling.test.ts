/** Who is served when, what a step holds, and that everything is given back. */
import { liveTensors, scope, viewOf, write } from '@trilithon/tensor'
import { someIds } from '@trilithon/testing'
import { describe, expect, test } from 'vitest'
import { iterationBounds } from '../src/engine/shared-stats.ts'
import { coreOf, submit, tokensOf } from './core.ts'
import { requestOf } from './running.ts'
import { packedScores, tinyModel } from './tiny-models.ts'

describe('the scheduler', () => {
  test('a long prompt comes in pieces, and whoever continues gets a token in each of these steps', () => {
    const core = coreOf('qwen3', { prefillTokens: 8, blocks: 128 })
    submit(core, 1, requestOf(someIds(3, 61), { sampling: { maxTokens: 40 } }))
    core.step()
    submit(core, 2, requestOf(someIds(60, 61), { sampling: { maxTokens: 4 } }))
    let steps = 0
    core.take()
    for (let begun = false; !begun; steps++) {
      core.step()
      const tokens = tokensOf(core.take())
      expect(tokens.get(1)?.length).toBe(1)
      begun = tokens.has(2)
    }
    expect(steps).toBe(Math.ceil(60 / 8))
    core.dispose()
  })

  test('many that continue do not keep a prompt from beginning', () => {
    const core = coreOf('qwen3', { prefillTokens: 4, blocks: 256 })
    for (let handle = 0; handle < 20; handle++) submit(core, handle, requestOf(someIds(3, 61, handle), { sampling: { maxTokens: 60 } }))
    for (let step = 0; step < 20; step++) core.step()
    expect(core.stats.get('running')).toBe(20)
    submit(core, 99, requestOf(someIds(8, 61)))
    core.take()
    core.step()
    core.step()
    expect(tokensOf(core.take()).has(99)).toBe(true)
    core.dispose()
  })

  test('priority comes first, then arrival; the maximum of sequences holds', () => {
    const core = coreOf('qwen3', { maxRunning: 1 })
    for (const [handle, priority] of [
      [1, 0],
      [2, 5],
      [3, -1],
      [4, 0],
    ] as const)
      submit(core, handle, requestOf([1, 2, 3], { priority, sampling: { maxTokens: 2 } }))
    const order: number[] = []
    while (core.step()) for (const handle of tokensOf(core.take()).keys()) if (order.at(-1) !== handle) order.push(handle)
    expect(order).toEqual([3, 1, 4, 2])
    core.dispose()
  })

  test('where pages run out, the one that is served last gives up its own, and ends with the tokens that it has alone', () => {
    const prompts = [someIds(9, 61, 1), someIds(9, 61, 2), someIds(9, 61, 3)]
    const alone = prompts.map((prompt, index) => {
      const core = coreOf('qwen3_moe')
      submit(core, 0, requestOf(prompt, { sampling: { maxTokens: 24, seed: BigInt(index) } }))
      const tokens: number[] = []
      while (core.step()) tokens.push(...(tokensOf(core.take()).get(0) ?? []))
      core.dispose()
      return tokens
    })
    const core = coreOf('qwen3_moe', { blocks: 14, maxModelLen: 56 })
    for (const [index, prompt] of prompts.entries())
      submit(core, index, requestOf(prompt, { sampling: { maxTokens: 24, seed: BigInt(index) } }))
    const together = prompts.map(() => [] as number[])
    while (core.step()) {
      for (const [handle, tokens] of tokensOf(core.take())) together[handle]?.push(...tokens)
      expect(core.faults()).toEqual([])
    }
    expect(core.stats.get('preemptions')).toBeGreaterThan(0)
    expect(together).toEqual(alone)
    expect(together[0]?.length).toBe(24)
    core.dispose()
  })

  test('one that is ended while it waits to be computed again has the rows of experts of all its tokens', () => {
    const prompts = [someIds(9, 61, 1), someIds(9, 61, 2), someIds(9, 61, 3)]
    const core = coreOf('qwen3_moe', { blocks: 14, maxModelLen: 56 })
    for (const [index, prompt] of prompts.entries())
      submit(core, index, requestOf(prompt, { routedExpertsFrom: index, sampling: { maxTokens: 24, seed: BigInt(index) } }))
    const tokens = prompts.map(() => [] as number[])
    while (core.stats.get('preemptions') === 0) {
      core.step()
      for (const [handle, added] of tokensOf(core.take())) tokens[handle]?.push(...added)
    }
    expect(core.stats.get('waiting')).toBe(1)
    core.abort(2)
    const [end] = core.take()?.ends ?? []
    const model = tinyModel('qwen3_moe', 1)
    const rows = 9 + (tokens[2]?.length ?? 0) - 1
    expect(rows).toBeGreaterThan(9)
    expect([end?.handle, end?.reason, end?.routedExperts?.shape]).toEqual([2, 'abort', [rows - 2, 2, 2]])
    const { routes } = packedScores(model, [...(prompts[2] ?? []), ...(tokens[2] ?? [])])
    expect([...(end?.routedExperts?.data ?? [])]).toEqual([...(routes?.data.subarray(2 * 4, rows * 4) ?? [])])
    model.dispose()
    core.dispose()
  })

  test('the time before the first step of a request is told apart from that of its prompt', () => {
    const core = coreOf('qwen3', { maxRunning: 1, prefillTokens: 4 })
    const begun = performance.now()
    for (const handle of [1, 2]) submit(core, handle, requestOf(someIds(40, 61, handle), { sampling: { maxTokens: 2 } }))
    const prompts = []
    while (core.step()) prompts.push(...(core.take()?.prompts ?? []))
    const seconds = (performance.now() - begun) / 1e3
    const [first, second] = prompts
    expect(prompts.map(({ handle }) => handle)).toEqual([1, 2])
    for (const { queueSeconds, prefillSeconds } of prompts) expect([queueSeconds >= 0, prefillSeconds > 0]).toEqual([true, true])
    // The second waits for all of the first.
    expect(second?.queueSeconds).toBeGreaterThan((first?.queueSeconds ?? 0) + (first?.prefillSeconds ?? 0))
    expect((second?.queueSeconds ?? 0) + (second?.prefillSeconds ?? 0)).toBeLessThanOrEqual(seconds)
    core.dispose()
  })

  test('requests that begin together with one prompt compute it once', () => {
    const core = coreOf('qwen3_moe')
    const prompt = someIds(21, 61)
    for (let handle = 0; handle < 8; handle++)
      submit(core, handle, requestOf(prompt, { salt: 'group', sampling: { seed: BigInt(handle), maxTokens: 3 } }))
    core.step()
    // 5 full blocks once, and 8 of the rest.
    expect(core.stats.get('usedBlocks')).toBe(5 + 8)
    const report = core.take()
    expect(report?.prompts.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 20, 20, 20, 20, 20, 20, 20])
    core.dispose()
  })

  test('another salt or tenant finds nothing; the same finds full blocks only, and never the last token', () => {
    const core = coreOf('qwen3')
    const prompt = someIds(16, 61)
    const cached = (salt: string, tenant: string, ids: number[]) => {
      submit(core, 1, requestOf(ids, { salt, tenant, sampling: { maxTokens: 1 } }))
      let found: number | undefined
      while (core.step()) found ??= core.take()?.prompts[0]?.cachedTokens
      core.take()
      return found
    }
    expect(cached('a', 't', prompt)).toBe(0)
    expect(cached('a', 't', prompt)).toBe(12)
    expect(cached('a', 't', [...prompt, 1])).toBe(16)
    expect(cached('b', 't', prompt)).toBe(0)
    expect(cached('', 't', prompt)).toBe(0)
    expect(cached('a', 'u', prompt)).toBe(0)
    expect(cached('a', 't', [...prompt.slice(0, 7), 60, ...prompt.slice(8)])).toBe(4)
    core.resetPrefixCache()
    expect(cached('a', 't', prompt)).toBe(0)
    expect(core.faults()).toEqual([])
    core.dispose()
  })

  test('what runs through a reset of the cache is not found afterwards', () => {
    const core = coreOf('qwen3')
    const prompt = someIds(9, 61)
    submit(core, 1, requestOf(prompt, { sampling: { maxTokens: 20 } }))
    core.step()
    core.resetPrefixCache()
    while (core.step());
    core.take()
    submit(core, 2, requestOf(prompt, { sampling: { maxTokens: 1 } }))
    core.step()
    expect(core.take()?.prompts[0]?.cachedTokens).toBe(0)
    core.dispose()
  })

  test('1,000 requests that end at random moments leave no page, no slot and no tensor', () => {
    const before = liveTensors().tensors
    const slotBytes = 2 * 2 * 8 * 4 * 4
    const slots = { buffer: new SharedArrayBuffer(8 * slotBytes), slotBytes, leaving: 4, coming: 4 }
    const core = coreOf('qwen3', { blocks: 40, maxModelLen: 64, prefillTokens: 16, slots, hasStore: true })
    const resident = liveTensors().tensors
    let state = 12345
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    const live = new Set<number>()
    let ended = 0
    /** What the other thread would do with a report, now and then late. */
    const late: (() => void)[] = []
    const takeReport = () => {
      const report = core.take()
      for (const { handle } of report?.ends ?? []) {
        live.delete(handle)
        ended++
      }
      for (const { slot } of report?.evictions ?? []) late.push(() => core.slotsWritten([slot]))
      for (const { handle } of report?.lookups ?? []) late.push(() => core.takeFetched({ handle, blocks: [], isPartial: false }))
      while (late.length > random(6)) late.shift()?.()
    }
    for (let handle = 0; handle < 1000; handle++) {
      submit(
        core,
        handle,
        requestOf(someIds(1 + random(40), 61, random(5)), { priority: random(3), sampling: { maxTokens: 1 + random(20) } }),
      )
      live.add(handle)
      for (let steps = random(3); steps > 0; steps--) core.step()
      if (live.size > 12 || random(3) === 0) core.abort([...live][random(live.size)] as number)
      takeReport()
      expect(core.faults()).toEqual([])
    }
    for (const handle of live) core.abort(handle)
    while (late.length > 0 || live.size > 0) takeReport()
    expect(ended).toBe(1000)
    expect([core.faults(), core.slotsInFlight, core.step()]).toEqual([[], 0, false])
    expect([core.stats.get('running'), core.stats.get('waiting'), core.stats.get('usedBlocks')]).toEqual([0, 0, 0])
    expect(liveTensors().tensors).toBe(resident)
    core.dispose()
    expect(liveTensors().tensors).toBe(before)
  })

  // known-faults 37: numbers that are none end the request that has them, and no other.
  test('a step that fails is taken apart: whoever is to blame ends with an error, the others as if alone', () => {
    const prompts = [someIds(6, 60, 1), [...someIds(5, 60, 2), 60, 3], someIds(30, 60, 3), someIds(6, 60, 1)]
    const run = (isBroken: boolean) => {
      const core = coreOf('qwen3_moe', { model: tinyModel('qwen3_moe', 1), prefillTokens: 16 })
      const table = core.weights.model.weights.get('model.embed_tokens.weight')?.value
      if (isBroken && table !== undefined) scope(() => write(viewOf(table, [16], [1], 60 * 16), new Float32Array(16).fill(Number.NaN)))
      const tokens = prompts.map(() => [] as number[])
      const reasons: string[] = []
      for (const [handle, prompt] of prompts.entries())
        if (isBroken || handle !== 1) submit(core, handle, requestOf(prompt, { sampling: { maxTokens: 6, seed: BigInt(handle), topK: 9 } }))
      while (core.step()) {
        const report = core.take()
        for (const [handle, added] of tokensOf(report)) tokens[handle]?.push(...added)
        for (const { handle, reason } of report?.ends ?? []) reasons[handle] = reason
        expect(core.faults()).toEqual([])
      }
      core.dispose()
      return { tokens, reasons }
    }
    const [good, broken] = [run(false), run(true)]
    expect(broken.reasons).toEqual(['length', 'error', 'length', 'length'])
    expect(broken.tokens).toEqual(good.tokens)
  })
})

describe('tokens of steps', () => {
  const iterations = (core: ReturnType<typeof coreOf>) => {
    const { counts, tokens } = core.stats.read().iterations
    return {
      steps: counts.flatMap((count, index) => (count === 0 ? [] : [[iterationBounds[index] ?? Number.POSITIVE_INFINITY, count]])),
      tokens,
    }
  }

  test('count the pieces of prompts that are computed, and what is sampled', () => {
    const core = coreOf('qwen3', { prefillTokens: 8 })
    const prompt = someIds(20, 61)
    submit(core, 1, requestOf(prompt, { sampling: { maxTokens: 4 } }))
    while (core.step());
    // 8, 8, 4 with the first sampled token, and three more.
    expect(iterations(core)).toEqual({
      steps: [
        [1, 3],
        [8, 3],
      ],
      tokens: 24,
    })
    // The cache has 16 of the prompt (four blocks; the last token is always computed): 4 and one, then three steps of one.
    submit(core, 2, requestOf(prompt, { sampling: { maxTokens: 4 } }))
    while (core.step());
    expect(iterations(core)).toEqual({
      steps: [
        [1, 6],
        [8, 4],
      ],
      tokens: 32,
    })
    core.dispose()
  })

  test('do not count again what is computed again', () => {
    const core = coreOf('qwen3', { blocks: 9, prefixCaching: false })
    for (const handle of [1, 2, 3]) submit(core, handle, requestOf(someIds(9, 61, handle), { sampling: { maxTokens: 12 } }))
    while (core.step());
    const {
      preemptions,
      iterations: { tokens },
    } = core.stats.read()
    expect(preemptions).toBeGreaterThan(0)
    expect(tokens).toBe(3 * (9 + 12))
    core.dispose()
  })
})
