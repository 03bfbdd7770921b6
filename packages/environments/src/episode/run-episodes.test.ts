import { silentLogger, type Turn } from '@trilithon/core'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { type FakeEngine, logprobOf, startFakeEngine } from '../__fixtures__/fake-engine.ts'
import { createLetterRenderer } from '../__fixtures__/letter-renderer.mjs'
import { GenerateClient } from '../client/generate-client.ts'
import { defineEnvironment, type EpisodeContext, type FinishedEpisode } from '../define/define-environment.ts'
import { prepareEnvironment } from '../load/load-environment.ts'
import { type EpisodePlan, type RunEpisodesOptions, runEpisodes } from './run-episodes.ts'

let engine: FakeEngine
const client = new GenerateClient()
beforeAll(async () => {
  engine = await startFakeEngine()
})
afterAll(async () => {
  await client.close()
  await engine.close()
})
beforeEach(() => {
  engine.options = {}
  engine.outage = null
  engine.requests.length = 0
})

type Task = { readonly id?: string; readonly index: number }
type Episode = (context: EpisodeContext<unknown, Task>) => Promise<unknown>

const dataset = () => ({ size: { train: null, eval: 4 }, task: ({ index }: { index: number }): Task => ({ index }) })
const perRollout = (episode: Episode, score: (episode: FinishedEpisode<unknown>) => unknown = () => 1) =>
  defineEnvironment({ name: 'test', args: z.strictObject({}), dataset, episode, score: (finished) => score(finished) as number })

async function run(exported: unknown, more: Partial<EpisodePlan> & Partial<RunEpisodesOptions> = {}, count = 1) {
  const environment = await prepareEnvironment(exported, { id: 'test', name: 'test', args: {}, settings: {} })
  const attempts: Turn[][] = []
  const plan: EpisodePlan = {
    rolloutId: 'r',
    split: 'train',
    index: 0,
    seed: 0,
    baseUrl: engine.url,
    headers: {},
    model: 'm',
    salt: '4',
    sampling: { temperature: 1 },
    maxSeqLen: 64,
    maxTotalCompletionTokens: -1,
    wantsRoutedExperts: false,
    ...more,
  }
  const outputs = await runEpisodes({
    environment,
    plans: Array.from({ length: count }, (_, episode) => ({ ...plan, rolloutId: `r${episode}` })),
    renderer: createLetterRenderer(),
    client,
    signal: new AbortController().signal,
    deadlineMs: 10_000,
    firstAttempt: 0,
    maxRetries: 0,
    stateColumns: [],
    logsData: false,
    log: silentLogger,
    onTurn: (_, attempt, turn) => {
      attempts[attempt] ??= []
      attempts[attempt].push(turn)
    },
    ...more,
  })
  const [output] = outputs
  if (output === undefined) throw new Error('no output')
  return { output, outputs, turns: attempts[output.attempt] ?? [], attempts }
}

describe('a conversation', () => {
  test('of any messages and answers: the prompt of each turn begins with all ids before it, and no sampled id is rendered again', async () => {
    const answer = fc.tuple(fc.array(fc.integer({ min: 128, max: 400 }), { maxLength: 5 }), fc.boolean())
    const messages = fc.array(fc.array(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 2 }), {
      minLength: 1,
      maxLength: 5,
    })
    await fc.assert(
      fc.asyncProperty(messages, fc.array(answer, { minLength: 5, maxLength: 5 }), async (rounds, answers) => {
        let asked = 0
        engine.options = {
          sample: () => {
            const [ids, stops] = answers[asked++ % answers.length] ?? [[], true]
            return stops || ids.length === 0 ? [...ids, 2] : ids
          },
        }
        const environment = perRollout(async ({ model }) => {
          for (const round of rounds) await model.turn(round.map((content) => ({ role: 'user' as const, content })))
        })
        const { output, turns } = await run(environment, { maxSeqLen: 10_000 })
        expect(output).toMatchObject({ reward: 1, stopCondition: 'completed', extensionBreaks: 0 })
        expect(turns).toHaveLength(rounds.length)
        for (const [at, { promptIds }] of turns.entries()) {
          const before = turns[at - 1]
          if (before === undefined) continue
          const history = [...before.promptIds, ...before.completionIds]
          expect([...promptIds.subarray(0, history.length)]).toEqual(history)
        }
      }),
      { numRuns: 25 },
    )
  })

  it('that the renderer cannot continue begins a new sequence, which is counted', async () => {
    const environment = perRollout(async ({ model }) => {
      await model.turn('a')
      await model.turn([{ role: 'system', content: 'b' }])
    })
    const { output, turns } = await run(environment)
    expect(output.extensionBreaks).toBe(1)
    expect(String.fromCharCode(...(turns[1]?.promptIds ?? []))).toBe('ade\u0002b')
  })

  it('tells of each token what the engine says of it: its version, that of the oldest key that it read, its log-probability', async () => {
    engine.options = { version: 6, sample: () => [300, 301, 302, 2] }
    const { turns } = await run(
      perRollout(async ({ model }) => {
        await model.turn('a')
        engine.options = { version: 8, sample: () => [303, 304, 2] }
        await model.turn('b')
      }),
    )
    expect(turns.map(({ versions }) => [...versions])).toEqual([
      [6, 7, 6, 7],
      [8, 9, 8],
    ])
    expect(turns.map(({ contextVersionsMin }) => [...contextVersionsMin])).toEqual([
      [6, 6, 6, 6],
      [8, 8, 8],
    ])
    expect(turns.map(({ logprobs }) => [...logprobs])).toEqual([[300, 301, 302, 2].map(logprobOf), [303, 304, 2].map(logprobOf)])
  })

  it('with a seed draws each turn by one of its own, and is the same under any other id', async () => {
    const drawn: number[] = []
    const environment = perRollout(async ({ model, random }) => {
      drawn.push(random.next())
      await model.turn('a')
      await model.turn('b')
    })
    const seeds = () => engine.requests.splice(0).map(({ body }) => (body.sampling_params as { seed?: number }).seed)
    await run(environment, { samplingSeed: 7 })
    const first = seeds()
    await run(environment, { samplingSeed: 7, salt: '5' }, 2)
    expect(seeds().sort()).toEqual([...first, ...first].sort())
    expect(first).toEqual([7, expect.any(Number)])
    expect(first[1]).not.toBe(7)
    await run(environment, { samplingSeed: 8 })
    expect(seeds()).not.toContain(first[1])
    expect(drawn[1]).toBe(drawn[0])
    expect(drawn[2]).toBe(drawn[0])
    expect(drawn[3]).not.toBe(drawn[0])
    await run(environment)
    expect(seeds()).toEqual([undefined, undefined])
  })

  it('gives the environment text without the end of turn, and the engine what sampling says', async () => {
    engine.options = { sample: () => [104, 105, 2] }
    const { output } = await run(
      perRollout(async ({ model }) => ({ answer: await model.turn('q') })),
      {
        sampling: { temperature: 0.7, top_k: 5, min_p: null, max_completion_tokens: 9, extra_body: { priority: 2, presence_penalty: 0.5 } },
        wantsRoutedExperts: false,
        stateColumns: ['answer', 'missing'],
      },
    )
    expect(output.state).toEqual({ answer: { text: 'hi', finishReason: 'stop', promptTokens: 1, completionTokens: 3 } })
    expect(engine.requests[0]?.body).toEqual({
      model: 'm',
      token_ids: [113],
      sampling_params: {
        temperature: 0.7,
        top_k: 5,
        presence_penalty: 0.5,
        max_tokens: 9,
        stop_token_ids: [2],
        logprobs: 1,
        skip_special_tokens: false,
      },
      priority: 2,
      cache_salt: '4',
    })
  })

  it('may be written as a generator, whose finally blocks run when it ends early', async () => {
    const ended: string[] = []
    const environment = defineEnvironment({
      name: 'test',
      args: z.strictObject({}),
      dataset,
      async *episode() {
        try {
          const first = yield 'a'
          const second = yield first.text
          return [first.text, second.text]
        } finally {
          ended.push('ended')
        }
      },
      score: ({ outcome }) => outcome?.length ?? -1,
    })
    const { output, turns } = await run(environment)
    expect(output.reward).toBe(2)
    expect(String.fromCharCode(...(turns[1]?.promptIds ?? []))).toBe('ade\u0002de')
    expect((await run(environment, { maxSeqLen: 4 })).output).toMatchObject({ reward: -1, stopCondition: 'prompt_too_long' })
    expect(ended).toEqual(['ended', 'ended'])
  })

  it('draws the same numbers when it is run again, and others for another episode', async () => {
    const draws: number[] = []
    const environment = perRollout(async ({ model, random }) => {
      draws.push(random.next())
      await model.turn('a')
    })
    for (let repeat = 0; repeat < 2; repeat++) await run(environment, {}, 2)
    expect(draws.slice(0, 2)).toEqual(draws.slice(2))
    expect(draws[0]).not.toBe(draws[1])
  })
})

describe('a limit on tokens', () => {
  const endless = perRollout(
    async ({ model }) => {
      for (;;) await model.turn('ab')
    },
    ({ answers }) => answers.length,
  )

  it('of the sequence ends the conversation, and what was sampled is scored', async () => {
    const { output, turns } = await run(endless, { maxSeqLen: 12 })
    // 2 + 3, 2 + 3, 2 + 0: the third prompt leaves no room.
    expect(output).toMatchObject({ reward: 2, stopCondition: 'prompt_too_long', isTruncated: true })
    expect(turns.map(({ promptIds }) => promptIds.length)).toEqual([2, 7])
  })

  it('cuts the answer to the room that is left', async () => {
    const { output, turns } = await run(endless, { maxSeqLen: 9 })
    expect(turns.map(({ completionIds, finishReason }) => [completionIds.length, finishReason])).toEqual([
      [3, 'stop'],
      [2, 'length'],
    ])
    expect(output).toMatchObject({ reward: 2, isTruncated: true })
  })

  it('of the episode counts over all turns', async () => {
    const { output, turns } = await run(endless, { maxTotalCompletionTokens: 7 })
    expect(turns.map(({ completionIds }) => completionIds.length)).toEqual([3, 3, 1])
    expect(output).toMatchObject({ reward: 3, stopCondition: 'max_total_completion_tokens', isTruncated: true })
  })

  it('that leaves no room for a first answer is an error, like an episode that asks nothing', async () => {
    expect((await run(endless, { maxSeqLen: 2 })).output).toMatchObject({
      reward: null,
      error: { type: 'EmptyTrajectory' },
      stopCondition: 'prompt_too_long',
    })
    expect((await run(perRollout(async () => 1))).output).toMatchObject({
      reward: null,
      error: { type: 'EmptyTrajectory' },
      stopCondition: 'error',
    })
  })
})

describe('an error never becomes a reward', () => {
  const ask: Episode = async ({ model }) => {
    await model.turn('a')
  }
  const asks = (score: (episode: FinishedEpisode<unknown>) => unknown) => perRollout(ask, score)
  test.each([
    ['NaN', asks(() => Number.NaN), 'RewardInvalid', /NaN/],
    ['a text', asks(() => '1'), 'RewardInvalid', /"1"/],
    ['nothing', asks(() => undefined), 'RewardInvalid', /undefined/],
    ['true', asks(() => true), 'RewardInvalid', /true/],
    ['an infinite metric', asks(() => ({ reward: 1, metrics: { x: Number.POSITIVE_INFINITY } })), 'RewardInvalid', /metric x/],
    ['a list of metrics', asks(() => ({ reward: 1, metrics: null })), 'RewardInvalid', /metrics/],
    [
      'a score that throws',
      asks(() => {
        throw new TypeError('the judge is broken')
      }),
      'TypeError',
      /judge/,
    ],
    [
      'an episode that throws',
      perRollout(async () => {
        throw new RangeError('the sandbox is broken')
      }),
      'RangeError',
      /sandbox/,
    ],
    [
      'an episode that throws no error',
      perRollout(async () => {
        throw 'a text'
      }),
      'Error',
      /threw a text/,
    ],
    ['a wrong message', perRollout(async ({ model }) => model.turn([{ role: 'robot' as 'user', content: 'x' }])), 'TypeError', /message 0/],
    [
      'two turns at once',
      perRollout(async ({ model }) => Promise.all([model.turn('a'), model.turn('b')])),
      'Error',
      /before the turn before/,
    ],
  ])('%s', async (_, environment, type, message) => {
    const { output } = await run(environment)
    expect(output).toMatchObject({ reward: null, metrics: {}, error: { type, message: expect.stringMatching(message) } })
  })

  it('an engine that is away, even where the environment catches what it throws', async () => {
    engine.outage = 503
    const hides = perRollout(async ({ model }) => {
      try {
        await model.turn('a')
      } catch {
        return 'all is well'
      }
    })
    const { output } = await run(hides, { deadlineMs: 400, maxRetries: 3 })
    expect(output).toMatchObject({ reward: null, error: { type: 'EngineUnavailable' }, stopCondition: 'error' })
  })

  it('an engine that refuses, and one that ends the request', async () => {
    engine.troubles.push({ status: 404, body: 'no model' })
    expect(
      (
        await run(
          asks(() => 1),
          { maxRetries: 3 },
        )
      ).output,
    ).toMatchObject({ reward: null, error: { type: 'EngineRejected' } })
    const aborted = { token_ids: [1], finish_reason: 'abort', logprobs: { content: [{ logprob: -1 }] } }
    engine.troubles.push({ answer: { choices: [aborted] } })
    expect((await run(asks(() => 1))).output).toMatchObject({ reward: null, error: { type: 'EngineAborted' } })
  })

  it('a deadline, in the episode and in scoring', async () => {
    const hangs = perRollout(async ({ model }) => {
      await model.turn('a')
      await new Promise(() => undefined)
    })
    expect((await run(hangs, { deadlineMs: 100, maxRetries: 3 })).output).toMatchObject({
      reward: null,
      error: { type: 'DeadlineExceeded' },
    })
    const judge = asks(() => new Promise(() => undefined))
    expect((await run(judge, { deadlineMs: 100, maxRetries: 3 })).output).toMatchObject({
      reward: null,
      error: { type: 'DeadlineExceeded' },
    })
  })

  it('what an environment throws until the deadline, and not the deadline', async () => {
    const broken = () => {
      throw new TypeError('x is not a function')
    }
    for (const environment of [perRollout(async () => broken()), asks(broken)]) {
      const { output } = await run(environment, { deadlineMs: 300, maxRetries: 9 })
      expect(output).toMatchObject({ reward: null, error: { type: 'TypeError', message: expect.stringMatching(/x is not a function/) } })
    }
  })

  it('a task that does not exist', async () => {
    const { output } = await run(
      asks(() => 1),
      { split: 'eval', index: 4, maxRetries: 3 },
    )
    expect(output).toMatchObject({ reward: null, error: { type: 'TaskInvalid', message: expect.stringMatching(/no task 4 of eval/) } })
  })
})

describe('a retry', () => {
  it('begins anew, and of the attempts before it no turn is left', async () => {
    let runs = 0
    const fails = perRollout(async ({ model }) => {
      await model.turn('a')
      if (runs++ < 2) throw new Error('flaky')
      await model.turn('b')
    })
    const { output, attempts, turns } = await run(fails, { maxRetries: 2 })
    expect(output).toMatchObject({ reward: 1, attempt: 2 })
    expect(attempts.map((all) => all.length)).toEqual([1, 1, 2])
    expect(turns[1]?.promptIds).toHaveLength(5)
    runs = 0
    expect((await run(fails, { maxRetries: 1 })).output).toMatchObject({ reward: null, error: { type: 'Error', message: 'flaky' } })
  })

  it('of scoring samples nothing again', async () => {
    let scored = 0
    const flaky = perRollout(
      async ({ model }) => model.turn('a'),
      () => {
        if (scored++ === 0) throw new Error('flaky')
        return 0.25
      },
    )
    expect((await run(flaky, { maxRetries: 1 })).output).toMatchObject({ reward: 0.25, attempt: 0 })
    expect(engine.requests).toHaveLength(1)
  })
})

describe('a group that is scored as one', () => {
  const group = (episode: Episode, score: (episodes: readonly FinishedEpisode<unknown>[]) => unknown) =>
    defineEnvironment({
      name: 'test',
      args: z.strictObject({}),
      scoring: 'group',
      dataset,
      episode,
      score: (all) => score(all) as number[],
    })

  it('gets one score per episode', async () => {
    const ranks = group(
      async ({ model, random }) => {
        await model.turn('a')
        return random.next()
      },
      (all) => all.map(({ outcome }) => all.filter((other) => (other.outcome as number) < (outcome as number)).length),
    )
    const { outputs } = await run(ranks, {}, 4)
    expect(outputs.map(({ reward }) => reward).sort()).toEqual([0, 1, 2, 3])
  })

  it('has no reward at all where one of it failed, and says why', async () => {
    let begun = 0
    const breaks = group(
      async ({ model }) => {
        if (begun++ === 1) throw new RangeError('broken')
        await model.turn('a')
      },
      (all) => all.map(() => 1),
    )
    const { outputs } = await run(breaks, {}, 3)
    expect(outputs.map(({ reward }) => reward)).toEqual([null, null, null])
    expect(outputs.map(({ error }) => error?.type)).toEqual(['GroupIncomplete', 'RangeError', 'GroupIncomplete'])
    expect(outputs[0]?.error?.message).toMatch(/1 of 3 .* broken/)
  })

  it('with another number of scores has none', async () => {
    const { outputs } = await run(
      group(
        async ({ model }) => model.turn('a'),
        () => [1],
      ),
      {},
      2,
    )
    expect(outputs.map(({ error }) => error?.type)).toEqual(['RewardInvalid', 'RewardInvalid'])
  })

  it('loses no other reward by one that is no number', async () => {
    const { outputs } = await run(
      group(
        async ({ model }) => model.turn('a'),
        () => [0.5, Number.NaN],
      ),
      {},
      2,
    )
    expect(outputs.map(({ reward, error }) => [reward, error?.type])).toEqual([
      [0.5, undefined],
      [null, 'RewardInvalid'],
    ])
  })
})
