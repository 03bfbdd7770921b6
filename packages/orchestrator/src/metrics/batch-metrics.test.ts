import { expect, it } from 'vitest'
import type { TrainGroup, TrainRollout } from '../batch/train-rollout.ts'
import { batchMetrics } from './batch-metrics.ts'

const group = (id: string, environment: string, size: number): TrainGroup => ({
  ...{ id, environment, size, version: 0, isShipped: false },
  task: { environment, index: 0, returns: 0 },
})
const rollout = (of: TrainGroup, reward: number, tokens: number, oldest = 5): TrainRollout => ({
  ...{
    id: `${of.id}.${tokens}`,
    group: of,
    taskId: 't',
    reward,
    advantage: 0,
    oldest,
    detected: [],
    preFilters: { isFiltered: false, hits: {} },
  },
  samples: [{ oldest } as TrainRollout['samples'][number]],
  facts: {
    ...{ turns: 1, inputTokens: 4, completionTokens: tokens, sequenceTokens: tokens + 4, prefillTokens: 4, isTruncated: tokens > 9 },
    extensionBreaks: tokens % 4,
    ...{
      stopCondition: 'completed',
      metrics: { exact: reward },
      timing: { total: 2, generation: 1, model: 0.75, scoring: 0.5 },
      state: {},
    },
  },
})
const counts = {
  ...{
    arrived: 10,
    errored: 2,
    errors: { EngineUnavailable: 2 },
    erroredByEnvironment: { y: 2 },
    cancelled: 3,
    cancelledByEnvironment: {},
    droppedCancelled: 1,
  },
  ...{ droppedStale: 4, abandoned: 0, preFiltered: 2, preHits: { gibberish: 1 } },
}

it('has prime-rl names: a mean within groups, then over groups; all environments and each', () => {
  const a = group('a', 'x', 2)
  const b = group('b', 'y', 3)
  const c = group('c', 'y', 1)
  const batch = [rollout(a, 1, 2), rollout(a, 1, 4), rollout(b, 0, 10, 4), rollout(c, 0.5, 6)].map((one, index) => ({
    rollout: one,
    filters: { isFiltered: index === 3, hits: { zero_advantage: index === 3 } },
  }))
  const values = batchMetrics({
    step: 6,
    batch,
    counts,
    totals: { total_tokens: 100, total_samples: 7, total_problems: 3 },
    times: { step: 1.5 },
  })
  expect(values).toMatchObject({
    'reward/all/mean': (1 + 0 + 0.5) / 3,
    'reward/all/max': 1,
    'reward/y/mean': 0.25,
    'decode_len/all/mean': (3 + 10 + 6) / 3,
    'seq_len/x/max': 7,
    'is_truncated/y/mean': 0.5,
    // 2 and 0, 2, 2 by group.
    'extension_breaks/all/mean': (1 + 2 + 2) / 3,
    'extension_breaks/all/max': 2,
    'extension_breaks/x/mean': 1,
    'stop_condition/all/completed': 1,
    'solve_none/all': 1 / 3,
    // A group of two whose rewards sum to two.
    'solve_all/all': 1 / 3,
    'effective_batch_size/all': 1 - 1 / 3 - 1 / 3,
    'filters/all/is_filtered': 1 / 4,
    'filters/y/zero_advantage': 1 / 2,
    'batch/x': 0.5,
    'metrics/y/exact': 0.25,
    'timing/all/total/mean': 2,
    'timing/all/env/mean': 0.25,
    'timing/all/overhead/mean': 0.5,
    'progress/tokens': 38,
    'progress/prefill_tokens': 16,
    'progress/decode_tokens': 22,
    'progress/samples': 3,
    'progress/rollouts': 4,
    'progress/trainable': 3,
    'progress/problems': 3,
    'progress/total_tokens': 100,
    // Of what is trained: lags 1, 1 and 2.
    'lag/max': 2,
    'lag/mean': 4 / 3,
    'error/all/mean': 0.2,
    'pre_filters/all/dropped_rate': 2 / 8,
    'pre_filters/all/gibberish/rate': 1 / 8,
    'error/type/EngineUnavailable': 2,
    'dispatcher/errored/train/y': 2,
    'dispatcher/cancelled/train': 3,
    'staleness/cancelled_rollouts': 3,
    'staleness/dropped_in_queue': 4,
    'time/step': 1.5,
  })
})
