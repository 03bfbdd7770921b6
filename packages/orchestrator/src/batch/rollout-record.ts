import { environmentFileName } from '@trilithon/environments/configuration'
import type { FinishedEpisode } from '../dispatch/group-plan.ts'
import type { BatchRollout } from '../metrics/batch-metrics.ts'

/** One line of `train_rollouts.jsonl`: what is told of a rollout of batch `step`, without its tokens. */
export function trainRecord({ rollout, filters }: BatchRollout, step: number): Record<string, unknown> {
  const { group, facts, reward, advantage, samples, oldest, taskId } = rollout
  return {
    ...{ env_name: group.environment, example_id: group.task.index, task_id: taskId, group_id: group.id, rollout_id: rollout.id },
    ...{ policy_version: group.version, oldest_version: oldest, off_policy_steps: step - oldest, reward, advantage },
    ...{ is_filtered: filters.isFiltered, filters: filters.hits, num_turns: facts.turns, num_samples: samples.length },
    ...{ is_completed: true, is_truncated: facts.isTruncated, stop_condition: facts.stopCondition, metrics: facts.metrics },
    ...{ timing: facts.timing, error: null },
    token_usage: {
      ...{ input_tokens: facts.inputTokens, output_tokens: facts.completionTokens },
      ...{ final_input_tokens: facts.prefillTokens, final_output_tokens: facts.completionTokens },
    },
    ...facts.state,
  }
}

export interface EvalEpisode extends FinishedEpisode {
  readonly groupId: string
  readonly taskIndex: number
  readonly groupVersion: number
}

/** File of the records of an evaluation, beside the batch of its step. */
export const evalRecordsFile = (environment: string): string => `eval_rollouts_${environmentFileName(environment)}.jsonl`

/** One line of `eval_rollouts_<env>.jsonl`. */
export function evalRecord({ rolloutId, groupId, taskIndex, groupVersion, result }: EvalEpisode, environment: string, step: number) {
  const outputTokens = result.turns.reduce((sum, { completionIds }) => sum + completionIds.length, 0)
  return {
    ...{ env_name: environment, example_id: taskIndex, task_id: result.taskId, group_id: groupId, rollout_id: rolloutId, eval_step: step },
    ...{ policy_version: groupVersion, reward: result.reward, num_turns: result.turns.length, metrics: result.metrics },
    ...{ is_completed: result.error === undefined, is_truncated: result.isTruncated, stop_condition: result.stopCondition },
    ...{ timing: result.timing, error: result.error ?? null },
    token_usage: {
      input_tokens: result.turns.reduce((sum, { promptIds }) => sum + promptIds.length, 0),
      output_tokens: outputTokens,
    },
    ...result.state,
  }
}
