import type { AdvantageTable } from '../configuration/advantage-table.ts'

/** What an advantage function sees of a finished episode. */
export interface AdvantageRollout {
  readonly id: string
  readonly environment: string
  readonly taskId: string
  readonly reward: number
  /** Tokens that the policy sampled, over all turns. */
  readonly completionTokens: number
  readonly turns: number
  readonly isTruncated: boolean
  readonly metrics: Readonly<Record<string, number>>
}

export interface AdvantageInputs {
  /** The episodes of one group that ended without an error. */
  readonly rollouts: readonly AdvantageRollout[]
  /** Tokens of the longest sequence. */
  readonly seqLen: number
}

/** One number per rollout, in their order. */
export type Advantage = (inputs: AdvantageInputs) => readonly number[]

type DefaultAdvantage = Omit<Extract<AdvantageTable, { type: 'default' }>, 'type'>

/** null: the bare reward. */
export const rewardAdvantage: Advantage = ({ rollouts }) => rollouts.map(({ reward }) => reward)

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** Below it a deviation is rounding, and all rewards count as equal. */
const leastDeviation = 1e-6

/**
 * GRPO without division by the deviation: reward minus the baseline of the group. With l tokens of an episode, S of the longest sequence, p the mean reward:
 * r' = r - coef * p * (l / S) * (r where gated by correctness, else 1); the baseline is the mean of r', or weighted by l. A group of one has 0.
 */
export function defaultAdvantage(options: DefaultAdvantage): Advantage {
  const { length_penalty: penalty, length_weighted_baseline: isWeighted, normalize_by_deviation: isNormalised } = options
  return ({ rollouts, seqLen }) => {
    if (rollouts.length <= 1) return rollouts.map(() => 0)
    const pass = mean(rewardAdvantage({ rollouts, seqLen }))
    const shaped = rollouts.map(({ reward, completionTokens }) =>
      penalty === null ? reward : reward - penalty.coef * pass * (completionTokens / seqLen) * (penalty.gate_by_correctness ? reward : 1),
    )
    const baseline = isWeighted ? weightedMean(shaped, rollouts) : mean(shaped)
    const advantages = shaped.map((value) => value - baseline)
    if (!isNormalised) return advantages
    const centre = mean(shaped)
    const deviation = Math.sqrt(mean(shaped.map((value) => (value - centre) ** 2)))
    return advantages.map((value) => (deviation < leastDeviation ? 0 : value / deviation))
  }
}

/** By tokens; a group without any token has the plain mean. */
function weightedMean(values: readonly number[], rollouts: readonly AdvantageRollout[]): number {
  const tokens = rollouts.reduce((sum, { completionTokens }) => sum + completionTokens, 0)
  if (tokens === 0) return mean(values)
  return values.reduce((sum, value, index) => sum + value * (rollouts[index]?.completionTokens ?? 0), 0) / tokens
}
