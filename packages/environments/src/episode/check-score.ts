import { EpisodeFailure } from './episode-failure.ts'

/** A score as reward and metrics. Throws `EpisodeFailure` of `RewardInvalid` for anything that is not a finite number. */
export function checkScore(score: unknown): { readonly reward: number; readonly metrics: Record<string, number> } {
  const { reward, metrics = {} } = (typeof score === 'object' && score !== null ? score : { reward: score }) as {
    reward?: unknown
    metrics?: unknown
  }
  if (typeof reward !== 'number' || !Number.isFinite(reward))
    throw new EpisodeFailure('RewardInvalid', `the reward is ${show(reward)}, not a finite number`)
  if (typeof metrics !== 'object' || metrics === null)
    throw new EpisodeFailure('RewardInvalid', `metrics are ${show(metrics)}, not an object of numbers`)
  for (const [name, value] of Object.entries(metrics)) {
    if (typeof value !== 'number' || !Number.isFinite(value))
      throw new EpisodeFailure('RewardInvalid', `the metric ${name} is ${show(value)}, not a finite number`)
  }
  return { reward, metrics: { ...(metrics as Record<string, number>) } }
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
