import type { TrainRollout } from '../batch/train-rollout.ts'
import type { SinkCounts } from '../batch/train-sink.ts'
import type { FilterResult } from '../filters/rollout-filter.ts'
import { groupBy, mean, spread } from './statistics.ts'

/** A rollout of a batch, with what the filters of full batches said. */
export interface BatchRollout {
  readonly rollout: TrainRollout
  readonly filters: FilterResult
}

export interface BatchMetricsOptions {
  readonly step: number
  readonly batch: readonly BatchRollout[]
  readonly counts: SinkCounts
  readonly totals: { readonly total_tokens: number; readonly total_samples: number; readonly total_problems: number }
  /** Seconds. */
  readonly times: Readonly<Record<string, number>>
}

/** Seconds of an episode by part: `env` is what its own code took between the calls of the engine, `overhead` what neither conversation nor scoring explains. */
const timings: Readonly<Record<string, (timing: TrainRollout['facts']['timing']) => number>> = {
  total: ({ total }) => total,
  generation: ({ generation }) => generation,
  model: ({ model }) => model,
  env: ({ generation, model }) => Math.max(0, generation - model),
  scoring: ({ scoring }) => scoring,
  overhead: ({ total, generation, scoring }) => Math.max(0, total - generation - scoring),
}

/**
 * Values of a batch under prime-rl's names: of all environments together and of each. Values of rollouts are a mean within each group first, then a mean, a maximum
 * and a minimum over groups. Beside prime-rl's: `lag/*` of what is trained, `progress/trainable`, `error/*` (also
 * by class), `staleness/*`, `extension_breaks/*`.
 */
export function batchMetrics({ step, batch, counts, totals, times }: BatchMetricsOptions): Record<string, number> {
  const trained = batch.filter(({ filters }) => !filters.isFiltered).map(({ rollout }) => rollout)
  const rollouts = batch.map(({ rollout }) => rollout)
  const sum = (of: (facts: TrainRollout['facts']) => number) => rollouts.reduce((total, { facts }) => total + of(facts), 0)
  const lags = trained.flatMap(({ samples }) => samples.map(({ oldest }) => step - oldest))
  const values: Record<string, number> = {
    ...valuesOf('all', batch),
    ...spread('lag', lags, ['mean', 'max']),
    'progress/tokens': sum(({ sequenceTokens }) => sequenceTokens),
    'progress/prefill_tokens': sum(({ prefillTokens }) => prefillTokens),
    'progress/decode_tokens': sum(({ completionTokens }) => completionTokens),
    'progress/samples': lags.length,
    'progress/rollouts': batch.length,
    'progress/trainable': trained.length,
    'progress/problems': groupBy(rollouts, ({ group }) => group).size,
    'progress/total_tokens': totals.total_tokens,
    'progress/total_samples': totals.total_samples,
    'progress/total_problems': totals.total_problems,
    'error/all/mean': counts.arrived === 0 ? 0 : counts.errored / counts.arrived,
    'pre_filters/all/dropped_rate': rate(counts.preFiltered, counts),
    'staleness/cancelled_rollouts': counts.cancelled,
    'staleness/dropped_with_group': counts.droppedCancelled,
    'staleness/dropped_in_queue': counts.droppedStale,
    'staleness/abandoned_tasks': counts.abandoned,
  }
  values['dispatcher/errored/train'] = counts.errored
  values['dispatcher/cancelled/train'] = counts.cancelled
  for (const [name, count] of Object.entries(counts.erroredByEnvironment)) values[`dispatcher/errored/train/${name}`] = count
  for (const [name, count] of Object.entries(counts.cancelledByEnvironment)) values[`dispatcher/cancelled/train/${name}`] = count
  for (const [type, count] of Object.entries(counts.errors)) values[`error/type/${type}`] = count
  for (const [name, hits] of Object.entries(counts.preHits)) values[`pre_filters/all/${name}/rate`] = rate(hits, counts)
  for (const [name, seconds] of Object.entries(times)) values[`time/${name}`] = seconds
  for (const [name, own] of groupBy(batch, ({ rollout }) => rollout.group.environment)) {
    Object.assign(values, valuesOf(name, own), environmentMetrics(name, own))
    values[`batch/${name}`] = own.length / batch.length
  }
  return values
}

const rate = (count: number, { arrived, errored }: SinkCounts): number => (arrived === errored ? 0 : count / (arrived - errored))

function valuesOf(name: string, batch: readonly BatchRollout[]): Record<string, number> {
  const groups = [...groupBy(batch, ({ rollout }) => rollout.group).values()]
  const byGroup = (of: (rollout: TrainRollout) => number) => groups.map((group) => mean(group.map(({ rollout }) => of(rollout))))
  const facts = (of: (own: TrainRollout['facts']) => number) => byGroup(({ facts: own }) => of(own))
  const rewards = groups.map((group) => group.reduce((sum, { rollout }) => sum + rollout.reward, 0))
  const share = (is: (total: number, size: number) => boolean) =>
    mean(groups.map((group, index) => Number(is(rewards[index] ?? 0, group[0]?.rollout.group.size ?? 0))))
  const none = share((total) => total === 0)
  const all = share((total, size) => total === size)
  const values: Record<string, number> = {
    ...spread(
      `reward/${name}`,
      byGroup(({ reward }) => reward),
    ),
    ...spread(
      `seq_len/${name}`,
      facts(({ sequenceTokens }) => sequenceTokens),
    ),
    ...spread(
      `prefill_len/${name}`,
      facts(({ prefillTokens }) => prefillTokens),
    ),
    ...spread(
      `decode_len/${name}`,
      facts(({ completionTokens }) => completionTokens),
    ),
    ...spread(
      `samples_per_rollout/${name}`,
      byGroup(({ samples }) => samples.length),
    ),
    ...spread(
      `num_turns/${name}`,
      facts(({ turns }) => turns),
    ),
    ...spread(
      `extension_breaks/${name}`,
      facts(({ extensionBreaks }) => extensionBreaks),
      ['mean', 'max'],
    ),
    ...spread(
      `is_truncated/${name}`,
      facts(({ isTruncated }) => Number(isTruncated)),
      ['mean', 'max'],
    ),
    [`stop_condition/${name}/generation_truncated`]: mean(batch.map(({ rollout }) => Number(rollout.facts.isTruncated))),
    [`solve_none/${name}`]: none,
    [`solve_all/${name}`]: all,
    [`effective_batch_size/${name}`]: 1 - none - all,
    [`filters/${name}/is_filtered`]: mean(batch.map(({ filters }) => Number(filters.isFiltered))),
  }
  for (const [condition, own] of groupBy(batch, ({ rollout }) => rollout.facts.stopCondition))
    values[`stop_condition/${name}/${condition}`] = own.length / batch.length
  for (const [timing, of] of Object.entries(timings))
    Object.assign(
      values,
      spread(
        `timing/${name}/${timing}`,
        facts((own) => of(own.timing)),
      ),
    )
  for (const filter of Object.keys(batch[0]?.filters.hits ?? {}))
    values[`filters/${name}/${filter}`] = mean(batch.map(({ filters }) => Number(filters.hits[filter] === true)))
  return values
}

/** What the environment itself measures, as a mean over the rollouts that have it. */
function environmentMetrics(name: string, batch: readonly BatchRollout[]): Record<string, number> {
  const found: Record<string, number[]> = {}
  for (const { rollout } of batch)
    for (const [metric, value] of Object.entries(rollout.facts.metrics)) {
      const list = found[metric] ?? []
      list.push(value)
      found[metric] = list
    }
  return Object.fromEntries(Object.entries(found).map(([metric, list]) => [`metrics/${name}/${metric}`, mean(list)]))
}
