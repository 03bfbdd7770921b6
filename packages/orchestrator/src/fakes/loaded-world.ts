import type { Router } from '@trilithon/core'
import type { EpisodeResult } from '@trilithon/environments'
import type { AdaptiveSettings } from '../concurrency/adaptive-concurrency.ts'
import type { EpisodePool } from '../dispatch/group-plan.ts'
import { Orchestrator } from '../run/orchestrator.ts'
import { fraction } from '../source/random.ts'
import { lagIn } from './create-world.ts'
import { FakeEngines, FakeTrainer, fakeParts } from './fake-world.ts'
import { VirtualClock } from './virtual-clock.ts'

export interface LoadedWorldOptions {
  readonly router: Router
  readonly seed: number
  readonly steps: number
  readonly batchSize: number
  readonly groupSize: number
  readonly maxInflight: number
  readonly level: number
  readonly bound: number
  /** Milliseconds of a step of the trainer. */
  readonly trainerMs: number
  /** Episodes whose KV the engine holds; null: any number. */
  readonly capacity: number | null
  /** Episodes that the engine computes as fast as one; more of them share its time. null: any number. */
  readonly saturation?: number | null
  readonly adaptive: AdaptiveSettings | null
}

export interface LoadedWorldResult {
  readonly stepsPerMinute: number
  readonly meanLag: number
  readonly maxLag: number
  /** Share of the episodes that were started and brought nothing to the trainer because they were too old. */
  readonly wasted: number
  /** Requests that lost their KV, per step. */
  readonly preemptionsPerStep: number
  /** Mean of episodes in flight, over time. */
  readonly inFlight: number
  /** What was told of each step. */
  readonly values: readonly Readonly<Record<string, number>>[]
}

const p50Ms = 1000
/** So that the 99th percentile of an episode is ten times its median. */
const sigma = Math.log(10) / 2.3263478740408408
/** An episode looks so often how loaded its engine is, where that matters. */
const looks = 4
/** Episodes that sample faster than this have fewer than two tokens; times of tokens are not measured finer. */
const tokenMs = 25

/**
 * Episodes with a long tail (log-normal) on an engine that has a capacity, beside a trainer that takes its time. Up to its capacity the engine serves every episode
 * as if it were alone; above it requests push each other out and are computed again, so that of twice the capacity half the work is for nothing. The first
 * quarter of the steps is not counted.
 */
export async function runLoadedWorld(options: LoadedWorldOptions): Promise<LoadedWorldResult> {
  const { seed, steps, batchSize, groupSize, maxInflight, level, bound, trainerMs, capacity, adaptive, router } = options
  const clock = new VirtualClock()
  const engines = new FakeEngines(clock)
  const trainer = new FakeTrainer(clock, trainerMs)
  const room = capacity ?? Number.POSITIVE_INFINITY
  const saturation = options.saturation ?? Number.POSITIVE_INFINITY
  const slices = capacity === null && options.saturation == null ? 1 : looks
  let running = 0
  let preemptions = 0
  let area = 0
  let changedMs = 0
  const change = (by: number) => {
    area += running * (clock.nowMs() - changedMs)
    changedMs = clock.nowMs()
    running += by
  }
  engines.load = async () => ({
    ...{ running: Math.min(running, room), waiting: Math.max(0, running - room), kvUsage: Math.min(1, running / room), preemptions },
    ...{ prefixQueries: 0, prefixHits: 0, generatedTokens: 0 },
  })
  const pool: EpisodePool = {
    ...{ name: 'loaded', tasks: null, evalTasks: null, scoring: 'rollout' },
    run: async ({ taskIndex, rolloutId }, { signal }): Promise<EpisodeResult> => {
      const number = 2 * (taskIndex * groupSize + Number(rolloutId.split('.')[1]))
      const normal = Math.sqrt(-2 * Math.log(fraction(seed, number) + 1e-12)) * Math.cos(2 * Math.PI * fraction(seed, number + 1))
      const ms = p50Ms * Math.exp(sigma * normal)
      const first = engines.served
      const beginMs = clock.nowMs()
      change(1)
      for (let slice = 0; slice < slices && !signal.aborted; slice++) {
        const load = running / room
        if (load > 1) preemptions++
        await clock.sleep((ms / slices) * Math.max(1, load) ** 2 * Math.max(1, running / saturation), signal)
      }
      change(-1)
      const seconds = (clock.nowMs() - beginMs) / 1000
      const common = {
        ...{ metrics: {}, isTruncated: false, extensionBreaks: 0, state: {}, taskId: String(taskIndex) },
        timing: { total: seconds, generation: seconds, model: seconds, scoring: 0 },
      }
      if (signal.aborted)
        return { ...common, turns: [], reward: null, stopCondition: 'error', error: { type: 'Cancelled', message: 'cancelled' } }
      const tokens = Math.max(2, Math.round(ms / tokenMs))
      const versions = new Uint32Array(tokens).fill(engines.served)
      versions[0] = first
      const turn = {
        ...{ promptIds: Uint32Array.of(1), completionIds: new Uint32Array(tokens).fill(2), logprobs: new Float32Array(tokens), versions },
        ...{ contextVersionsMin: versions, temperature: 1, finishReason: 'stop' as const },
      }
      return { ...common, turns: [turn], reward: fraction(seed + 1, number), stopCondition: 'completed' }
    },
    runGroup: async () => [],
  }
  const made = fakeParts({
    ...{ clock, engines, trainer, pools: [pool as never], groupSize, router },
    settings: {
      ...{ maxSteps: steps, batchSize, maxInflight, maxAsyncLevel: level, maxOffPolicySteps: bound, logInterval: 1e9 },
      ...{ pollsEngines: true, adaptiveConcurrency: adaptive },
    },
  })
  const orchestrator = new Orchestrator({
    ...made,
    // Engines are read every five seconds, for as long as the run takes.
    report: (event) => event.kind === 'step' && made.events.push(event),
  })
  const controller = new AbortController()
  const training = trainer.run(controller.signal)
  const from = Math.floor(steps / 4)
  await clock.run(
    orchestrator.run(controller.signal).finally(() => controller.abort()),
    Number.POSITIVE_INFINITY,
  )
  await training
  const counted = trainer.batches.slice(from)
  const lags = counted.flatMap(({ step, samples }) => samples.map((sample) => lagIn(step, sample)))
  const values = made.events.flatMap((event) => (event.kind === 'step' ? [event.values] : []))
  const sum = (key: string) => values.slice(from).reduce((total, one) => total + (one[key] ?? 0), 0)
  const wasted = sum('staleness/cancelled_rollouts') + sum('staleness/dropped_with_group') + sum('staleness/dropped_in_queue')
  const [firstMs, lastMs] = [trainer.batches[from - 1]?.atMs ?? 0, trainer.batches.at(-1)?.atMs ?? 0]
  return {
    stepsPerMinute: (counted.length * 60_000) / (lastMs - firstMs),
    meanLag: lags.reduce((total, lag) => total + lag, 0) / lags.length,
    maxLag: lags.reduce((most, lag) => Math.max(most, lag), 0),
    wasted: wasted / (wasted + sum('progress/rollouts')),
    preemptionsPerStep: preemptions / steps,
    inFlight: area / lastMs,
    values,
  }
}
