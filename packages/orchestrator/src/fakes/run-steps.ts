import type { Router, Turn } from '@trilithon/core'
import type { EpisodeRequest, EpisodeResult } from '@trilithon/environments'
import { encodeTrainingBatch } from '@trilithon/transport'
import type { EpisodePool } from '../dispatch/group-plan.ts'
import { createFilters } from '../filters/rollout-filter.ts'
import { Orchestrator } from '../run/orchestrator.ts'
import { fraction } from '../source/random.ts'
import { FakeEngines, FakeTrainer, fakeParts } from './fake-world.ts'
import { VirtualClock } from './virtual-clock.ts'

export interface RunStepsOptions {
  readonly steps: number
  readonly batchSize: number
  readonly groupSize: number
  /** Tokens that an episode samples, in one turn. */
  readonly tokens: number
  readonly router: Router
  /** Called behind each batch. */
  readonly onStep?: (step: number) => void
}

/**
 * Runs the orchestrator as fast as it goes: engines and trainer take no time of the processor, batches are encoded as they are on their way to the disk, records
 * become text. For measuring what the orchestrator itself costs.
 */
export async function runSteps({
  steps,
  batchSize,
  groupSize,
  tokens,
  router,
  onStep,
}: RunStepsOptions): Promise<{ readonly bytes: number }> {
  const clock = new VirtualClock()
  const engines = new FakeEngines(clock)
  const trainer = new FakeTrainer(clock, 1)
  let bytes = 0
  const pool: EpisodePool = {
    ...{ name: 'instant', tasks: 1000, evalTasks: null, scoring: 'rollout' },
    run: async (request, { signal, onTurn }) => {
      await clock.sleep(1 + 4 * fraction(1, request.taskIndex), signal)
      return result(request, tokens, engines.served, signal.aborted, onTurn)
    },
    runGroup: async () => [],
  }
  const parts = fakeParts({
    ...{ clock, engines, trainer, pools: [], groupSize, router },
    settings: { maxSteps: steps, batchSize, maxInflight: batchSize, logInterval: 1e6, seqLen: 4096 },
  })
  const [advantage] = fakeParts({ clock, engines, trainer, pools: [pool as never], groupSize, router }).train
  if (advantage === undefined) throw new Error('there is an environment')
  const orchestrator = new Orchestrator({
    ...parts,
    train: [advantage],
    preFilters: createFilters([{ type: 'gibberish', enforce: false, token_id_threshold: 1e6, logprob_offset: 2 }], 1000),
    postFilters: createFilters([{ type: 'repetition', enforce: false, window: 3000, prob_threshold: 0.99 }], 1000),
    sender: {
      async send(step, samples, progress) {
        const encoded = encodeTrainingBatch({ step, samples })
        bytes += encoded.bytes.length + JSON.stringify(progress).length
        await trainer.sender.send(step, [], {})
        trainer.batches.length = 0
        onStep?.(step)
      },
    },
    files: {
      saveRecords: async (_, __, records) => {
        bytes += records.reduce<number>((sum, record) => sum + JSON.stringify(record).length, 0)
      },
      saveCheckpoint: null,
    },
    report: () => undefined,
  })
  const controller = new AbortController()
  const training = trainer.run(controller.signal)
  await clock.run(
    orchestrator.run(controller.signal).finally(() => controller.abort()),
    Number.POSITIVE_INFINITY,
  )
  await training
  return { bytes }
}

function result(
  { taskIndex, rolloutId }: EpisodeRequest,
  tokens: number,
  version: number,
  isCancelled: boolean,
  onTurn: ((turn: Turn, attempt: number) => void) | undefined,
): EpisodeResult {
  const common = {
    ...{ metrics: {}, timing: { total: 1, generation: 1, model: 1, scoring: 0 }, isTruncated: false, extensionBreaks: 0, state: {} },
    taskId: String(taskIndex),
  }
  if (isCancelled) return { ...common, turns: [], reward: null, stopCondition: 'error', error: { type: 'Cancelled', message: '' } }
  const turn: Turn = {
    ...{ promptIds: new Uint32Array(16).fill(1), completionIds: new Uint32Array(tokens).fill(2), temperature: 1, finishReason: 'stop' },
    logprobs: new Float32Array(tokens).fill(-1),
    versions: new Uint32Array(tokens).fill(version),
    contextVersionsMin: new Uint32Array(tokens).fill(version),
  }
  onTurn?.(turn, 0)
  return { ...common, turns: [turn], reward: fraction(2, taskIndex * 16 + Number(rolloutId.split('.')[1])), stopCondition: 'completed' }
}
