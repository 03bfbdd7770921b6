import { describe, expect, it } from 'vitest'
import type { EvalEpisode } from '../batch/rollout-record.ts'
import { evalSummary, passAtK } from './eval-summary.ts'

const episode = (groupId: string, reward: number | null, { tokens = 2, version = 0, turns = 1 } = {}): EvalEpisode => ({
  ...{ rolloutId: `${groupId}.0`, groupId, taskIndex: 0, groupVersion: 0, version: 0, worker: 'w' },
  result: {
    turns: Array.from({ length: turns }, () => ({
      ...{
        promptIds: Uint32Array.of(1),
        completionIds: new Uint32Array(tokens),
        logprobs: new Float32Array(tokens),
        temperature: 0,
        finishReason: 'stop' as const,
      },
      ...{ versions: new Uint32Array(tokens).fill(version), contextVersionsMin: new Uint32Array(tokens) },
    })),
    ...{ reward, metrics: {}, stopCondition: 'completed', isTruncated: false, taskId: 't', extensionBreaks: 0, state: {} },
    timing: { total: 1, generation: 1, model: 1, scoring: 0 },
    ...(reward === null ? { error: { type: 'Boom', message: 'no' } } : {}),
  },
})
const summary = (episodes: readonly EvalEpisode[], groupSize = 4) => evalSummary({ environment: 'e', groupSize, episodes, time: 3 })

describe('pass@k', () => {
  it.each([
    // 1 - C(n - c, k) / C(n, k)
    [4, 1, 1, 1 / 4],
    [4, 1, 2, 1 - 3 / 6],
    [4, 2, 2, 1 - 1 / 6],
    [4, 3, 2, 1],
    [4, 0, 4, 0],
    [5, 2, 3, 1 - 1 / 10],
  ])('of %i answers with %i right, %i drawn', (n, c, k, expected) => expect(passAtK(n, c, k)).toBeCloseTo(expected, 12))

  it('is a mean over tasks, for powers of two', () => {
    const right = [...[1, 0, 0, 0].map((reward) => episode('a', reward)), ...[1, 1, 0, 0].map((reward) => episode('b', reward))]
    const values = summary(right)
    expect(values).toMatchObject({ 'eval/e/avg@4': 3 / 8, 'eval/e/pass@1': 3 / 8, 'eval/e/pass@4': 1 })
    expect(values['eval/e/pass@2']).toBeCloseTo((1 / 2 + 5 / 6) / 2, 12)
  })

  it('is not told for other rewards than 0 and 1', () => {
    expect(Object.keys(summary([episode('a', 0.5), episode('a', 1)])).some((key) => key.includes('pass@'))).toBe(false)
  })
})

describe('an evaluation', () => {
  it('leaves out what failed, and counts it', () => {
    expect(summary([episode('a', 1), episode('a', null)], 2)).toMatchObject({
      'eval/e/avg@2': 1,
      'eval/e/errored_count': 1,
      'eval/e/error/mean': 0.5,
      'eval/e/time': 3,
    })
  })

  it('of failures alone has no reward', () => {
    expect(summary([episode('a', null)])).toEqual({
      ...{ 'eval/e/errored_count': 1, 'eval/e/error/mean': 1, 'eval/e/cancelled_count': 0, 'eval/e/time': 3 },
      ...{ 'dispatcher/errored/eval/e': 1, 'dispatcher/cancelled/eval/e': 0 },
    })
  })

  it('says the oldest version that answered, and the newest', () => {
    expect(summary([episode('a', 1, { version: 4 }), episode('b', 1, { version: 3 })])).toMatchObject({
      'eval/e/policy_version': 3,
      'eval/e/policy_version_max': 4,
    })
  })

  it('measures lengths and turns', () => {
    expect(summary([episode('a', 1, { tokens: 3, turns: 2 }), episode('b', 0, { tokens: 0 })])).toMatchObject({
      'eval/e/completion_len/mean': 3,
      'eval/e/completion_len/max': 6,
      'eval/e/num_turns/max': 2,
      'eval/e/no_response/mean': 0.5,
    })
  })
})
