import type { EvalEpisode } from '../batch/rollout-record.ts'
import { groupBy, mean, spread } from '../metrics/statistics.ts'

export interface EvalSummaryOptions {
  readonly environment: string
  readonly groupSize: number
  readonly episodes: readonly EvalEpisode[]
  /** Seconds from its first episode to its last. */
  readonly time: number
}

/** Probability that one of `k` draws without repetition from `n` answers, of which `c` are right, is right. */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1
  let wrong = 1
  for (let index = 0; index < k; index++) wrong *= (n - c - index) / (n - index)
  return 1 - wrong
}

/** Values of an evaluation under prime-rl's names, over the episodes that ended without an error; `pass@k` only where all rewards are 0 or 1. */
export function evalSummary({ environment, groupSize, episodes, time }: EvalSummaryOptions): Record<string, number> {
  const at = `eval/${environment}`
  const sound = episodes.filter(({ result }) => result.error === undefined && result.reward !== null)
  const rewards = sound.map(({ result }) => result.reward ?? 0)
  const tokensOf = ({ result }: EvalEpisode) => result.turns.reduce((sum, { completionIds }) => sum + completionIds.length, 0)
  const versions = sound.map(({ result, groupVersion }) => {
    const [first] = result.turns.flatMap((turn) => [...turn.versions.subarray(0, 1)])
    return first ?? groupVersion
  })
  const errored = episodes.length - sound.length
  const cancelled = episodes.filter(({ result }) => result.error?.type === 'Cancelled').length
  const values: Record<string, number> = {
    [`${at}/errored_count`]: errored,
    [`${at}/error/mean`]: episodes.length === 0 ? 0 : 1 - sound.length / episodes.length,
    [`${at}/cancelled_count`]: cancelled,
    [`dispatcher/errored/eval/${environment}`]: errored,
    [`dispatcher/cancelled/eval/${environment}`]: cancelled,
    [`${at}/time`]: time,
  }
  if (sound.length === 0) return values
  return {
    [`${at}/avg@${groupSize}`]: mean(rewards),
    ...spread(`${at}/completion_len`, sound.map(tokensOf)),
    [`${at}/is_truncated/mean`]: mean(sound.map(({ result }) => Number(result.isTruncated))),
    [`${at}/no_response/mean`]: mean(sound.map((episode) => Number(tokensOf(episode) === 0))),
    ...spread(
      `${at}/num_turns`,
      sound.map(({ result }) => result.turns.length),
    ),
    [`${at}/policy_version`]: versions.reduce((least, version) => Math.min(least, version), Number.POSITIVE_INFINITY),
    [`${at}/policy_version_max`]: versions.reduce((most, version) => Math.max(most, version), 0),
    ...passRates(at, sound),
    ...values,
  }
}

function passRates(at: string, episodes: readonly EvalEpisode[]): Record<string, number> {
  if (!episodes.every(({ result }) => result.reward === 0 || result.reward === 1)) return {}
  const groups = [...groupBy(episodes, ({ groupId }) => groupId).values()].map((group) => ({
    n: group.length,
    c: group.filter(({ result }) => result.reward === 1).length,
  }))
  const most = Math.max(...groups.map(({ n }) => n))
  const rates: Record<string, number> = {}
  for (let k = 1; k <= most; k *= 2) {
    const enough = groups.filter(({ n }) => n >= k)
    rates[`${at}/pass@${k}`] = mean(enough.map(({ n, c }) => passAtK(n, c, k)))
  }
  return rates
}
