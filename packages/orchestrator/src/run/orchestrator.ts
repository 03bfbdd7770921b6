import { invariant, type PolicyVersion, TrilithonError } from '@trilithon/core'
import { evalRecordsFile, trainRecord } from '../batch/rollout-record.ts'
import { samplesOf, type TrainRollout } from '../batch/train-rollout.ts'
import { TrainSink } from '../batch/train-sink.ts'
import { AdaptiveConcurrency } from '../concurrency/adaptive-concurrency.ts'
import type { ShippedRollout } from '../concurrency/trainer-demand.ts'
import { Dispatcher } from '../dispatch/dispatcher.ts'
import type { GroupPlan } from '../dispatch/group-plan.ts'
import { type EvalResult, EvalRuns } from '../evals/eval-runs.ts'
import { applyFilters } from '../filters/rollout-filter.ts'
import { EngineMetrics } from '../fleet/engine-metrics.ts'
import { EngineWatch } from '../fleet/engine-watch.ts'
import { type BatchRollout, batchMetrics } from '../metrics/batch-metrics.ts'
import type { Progress } from '../progress/progress.ts'
import { TaskSource } from '../source/task-source.ts'
import { WeightUpdater } from '../updates/weight-updater.ts'
import { Gate } from './gate.ts'
import type { OrchestratorParts } from './orchestrator-parts.ts'
import { runTogether } from './run-together.ts'
import { watchForStall } from './stall-watch.ts'
import { statusLoop, statusValues } from './status-loop.ts'
import { Turns } from './turns.ts'
import { Wake } from './wake.ts'

/** So many batches in a row without anything to train end the run. */
export const maxEmptyBatches = 10

/** With twice the episodes in flight where that is more: only failures since the start end a run. */
const leastErrorLimit = 50

/** Runs episodes, makes batches of them, ships them in order, and brings new weights to the engines. */
export class Orchestrator {
  readonly #parts: OrchestratorParts
  readonly #gate: Gate
  readonly #source: TaskSource
  readonly #sink: TrainSink
  readonly #evals: EvalRuns
  readonly #dispatcher: Dispatcher
  readonly #updater: WeightUpdater
  readonly #watch: EngineWatch
  /** Of whatever changes engines. */
  readonly #turns = new Turns()
  /** A version that no engine was left for; the next one that comes back gets it. */
  #missed: PolicyVersion | undefined
  readonly #concurrency: AdaptiveConcurrency | undefined
  readonly #wake = new Wake()
  readonly #byName: ReadonlyMap<string, OrchestratorParts['train'][number]>
  readonly #totals: Pick<Progress, 'total_tokens' | 'total_samples' | 'total_problems'>
  /** What is being saved beside the main loop. */
  readonly #saving = new Set<Promise<void>>()
  #saveFailure: { readonly reason: unknown } | undefined
  #nextGroup: number
  #isDraining = false
  /** A batch is on its way out: what is started now is for the one behind it. */
  #isSending = false
  #emptyBatches = 0
  /** Evaluations up to this step were begun. */
  #evaluatedStep: number
  #shippedMs: number
  #servedMs: number
  #weightsWaitS = 0
  /** Mean tokens of a rollout so far; the sequence length before there is one. */
  #meanTokens: number

  constructor(parts: OrchestratorParts) {
    this.#parts = parts
    const { settings, progress, version, clock, train, log } = parts
    this.#gate = new Gate({ level: settings.maxAsyncLevel, bound: settings.maxOffPolicySteps }, { version, step: progress?.step ?? 0 })
    if (this.#gate.level < settings.maxAsyncLevel)
      log.info('max_off_policy_steps limits max_async_level', { max_async_level: this.#gate.level })
    const { total_tokens = 0, total_samples = 0, total_problems = 0, next_group = 0 } = progress ?? {}
    this.#totals = { total_tokens, total_samples, total_problems }
    this.#nextGroup = next_group
    this.#meanTokens = settings.seqLen
    this.#evaluatedStep = version
    this.#shippedMs = this.#servedMs = clock.nowMs()
    const environments = train.map(({ environment, ratio }) => ({ name: environment.name, tasks: environment.pool.tasks, ratio }))
    this.#byName = new Map(train.map((one) => [one.environment.name, one]))
    this.#source = new TaskSource(environments, undefined, progress?.source)
    this.#sink = new TrainSink({
      ...{ preFilters: parts.preFilters, postFilters: parts.postFilters, seqLen: settings.seqLen, log },
      errorLimit: Math.max(leastErrorLimit, 2 * settings.maxInflight),
      onChange: () => this.#changed(),
      giveBack: (task) => this.#source.giveBack(task),
    })
    this.#evals = new EvalRuns({ environments: parts.evals, clock, onDone: (result) => this.#evaluated(result) })
    this.#concurrency = createConcurrency(parts)
    this.#dispatcher = new Dispatcher({
      ...{ router: parts.router, fleet: parts.fleet, clock, log, facts: parts.facts, policy: this.#gate.state },
      ...{ maxInflight: settings.maxInflight, tasksPerMinute: settings.tasksPerMinute },
      mayTrain: () => !this.#isDraining && this.#gate.isOpenAt(this.#gate.state.step + Number(this.#isSending)),
      mayBegin: (kind, inFlight) => this.#concurrency?.mayBegin(kind, inFlight) ?? true,
      nextTrain: () => this.#nextTrain(),
      nextEval: () => this.#evals.next(),
    })
    this.#updater = this.#createUpdater()
    this.#watch = this.#createWatch()
  }

  /** What goes on, for metrics and tests. */
  get state() {
    const { step, version } = this.#gate.state
    return {
      ...{ step, version, lead: this.#gate.lead, pending: this.#sink.pending.length, dispatcher: this.#dispatcher.stats },
      ...{ queuedEvals: this.#evals.queued, enginesReady: this.#watch.ready },
      ...{ updates: this.#updater.updates, times: this.#updater.times, weightsWaitS: this.#weightsWaitS },
      isIdle: !this.#gate.isOpen && this.#dispatcher.isIdle,
    }
  }

  /** Until the last batch is shipped and evaluations are done, or the signal aborts. Rejects with the first failure of anything. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, report, settings, fleet, watchVersions, admin, log } = this.#parts
    const { state } = this.#gate
    const metrics = new EngineMetrics({
      ...{ admin, fleet, clock, log },
      onLoads: (loads) => {
        this.#concurrency?.looked(loads, this.#dispatcher.inFlight)
        this.#dispatcher.wake()
      },
    })
    this.#fireFirstEvals()
    try {
      await runTogether(
        (inner) => this.#ship(inner),
        {
          dispatcher: (inner) => this.#dispatcher.run(inner),
          'watch of weights': (inner) => watchVersions((version) => this.#update(version, inner), { signal: inner, above: state.version }),
          'status report': (inner) =>
            statusLoop({
              clock,
              report,
              intervalS: settings.logInterval,
              read: () => this.state,
              more: () => metrics.values,
              signal: inner,
            }),
          'watch of episodes': (inner) =>
            watchForStall(
              { clock, log, report, fleet, admin, flying: () => this.#dispatcher.flying, timeoutS: settings.stallTimeoutS },
              inner,
            ),
          ...Object.fromEntries(
            fleet.engines.map((engine) => [`watch of ${engine}`, (inner: AbortSignal) => this.#watch.run(engine, inner)]),
          ),
          ...(settings.pollsEngines ? { 'metrics of engines': (inner: AbortSignal) => metrics.run(inner) } : {}),
        },
        signal,
      )
    } finally {
      await Promise.allSettled(this.#saving)
    }
    if (this.#saveFailure !== undefined) throw this.#saveFailure.reason
  }

  #createUpdater(): WeightUpdater {
    const { admin, fleet, clock, log, folderOf, holds } = this.#parts
    const { state, bound } = this.#gate
    return new WeightUpdater({
      ...{ admin, fleet, clock, log, folderOf, holds },
      onPending: () => this.#dispatcher.cancelStale(state.step, bound),
      onPause: () => this.#dispatcher.hold(),
      onServed: (version) => {
        state.version = version
      },
      onEnd: () => {
        this.#dispatcher.release()
        this.#changed()
      },
      onEngineFailed: (engine, reason) => {
        this.#watch.note(engine, reason)
        this.#leave(engine)
      },
    })
  }

  #createWatch(): EngineWatch {
    const { admin, fleet, clock, log, folderOf, settings } = this.#parts
    return new EngineWatch({
      ...{ admin, fleet, clock, log, folderOf, model: settings.checkedModel, recoveryS: settings.recoveryS, turns: this.#turns },
      policy: this.#gate.state,
      missed: () => this.#missed,
      update: async (version, signal) => {
        if (!(await this.#bring(version, signal))) throw new Error(`version ${version} was overtaken`)
      },
      onLost: (engine) => this.#leave(engine),
    })
  }

  #leave(engine: string): void {
    for (const { id } of this.#parts.fleet.workersOf(engine)) this.#dispatcher.leave(id)
  }

  async #update(version: PolicyVersion, signal: AbortSignal): Promise<void> {
    const { clock, log, settings } = this.#parts
    this.#weightsWaitS = (clock.nowMs() - this.#servedMs) / 1000
    await this.#turns.take(async () => {
      try {
        if (this.#watch.isEmpty) this.#miss(version)
        else await this.#bring(version, signal)
      } catch (error) {
        // The run ends: trainer and engines may have gone before, with the version that was on its way.
        if (signal.aborted) return log.debug('an update was given up with the run', { version, error })
        if (settings.recoveryS === 0 || !this.#watch.isEmpty) throw error
        this.#miss(version)
      }
    })
  }

  /** One that is gone already was overtaken, and the watch comes with the newer one. */
  #miss(version: PolicyVersion): void {
    if (this.#parts.holds.begin(version)) this.#missed = version
  }

  /** Brings a version to the engines that are there; false where it is gone. Rejects where no engine is left. */
  async #bring(version: PolicyVersion, signal: AbortSignal): Promise<boolean> {
    if (!(await this.#updater.apply(version, signal))) return false
    this.#missed = undefined
    this.#servedMs = this.#parts.clock.nowMs()
    this.#concurrency?.served(this.#gate.state.version, this.#servedMs)
    this.#fireDueEvals()
    this.#changed()
    return true
  }

  #changed(): void {
    this.#wake.wake()
    this.#dispatcher.wake()
  }

  /** Opens a group where a batch may need one. At level 0 only what the batch that is next lacks is started. */
  #nextTrain(): GroupPlan | undefined {
    if (this.#gate.level === 0 && !this.#isLacking()) return undefined
    const task = this.#source.next()
    const environment = this.#byName.get(task.environment)
    invariant(environment !== undefined, `The source drew a task of ${task.environment}, which is not trained.`)
    return this.#sink.plan(idOf(this.#nextGroup++), task, environment)
  }

  #isLacking(): boolean {
    const { batchSize, tokenBatchSize } = this.#parts.settings
    const { pending } = this.#sink
    const expected = this.#dispatcher.expectedTrain
    if (batchSize !== null) return pending.length + expected < batchSize
    return tokensOf(pending) + expected * this.#meanTokens < (tokenBatchSize ?? 0)
  }

  /** How many waiting rollouts make the next batch; undefined where there are too few. */
  #cohort(): number | undefined {
    const { batchSize, tokenBatchSize } = this.#parts.settings
    const { pending } = this.#sink
    if (batchSize !== null) return pending.length >= batchSize ? batchSize : undefined
    let tokens = 0
    for (const [index, { facts }] of pending.entries()) {
      tokens += facts.sequenceTokens
      if (tokens >= (tokenBatchSize ?? 0)) return index + 1
    }
    return undefined
  }

  async #ship(signal: AbortSignal): Promise<void> {
    const { settings } = this.#parts
    const { state } = this.#gate
    signal.addEventListener('abort', this.#wake.wake, { once: true })
    while (!signal.aborted) {
      if (this.#saveFailure !== undefined) throw this.#saveFailure.reason
      if (settings.maxSteps !== null && state.step >= settings.maxSteps) return this.#drain(signal)
      this.#sink.dropStale((oldest) => this.#gate.isStale(oldest))
      const cohort = this.#cohort()
      if (cohort !== undefined && this.#gate.mayShip) await this.#shipBatch(this.#sink.take(cohort), signal)
      else await this.#wake.next()
    }
  }

  async #shipBatch(rollouts: readonly TrainRollout[], signal: AbortSignal): Promise<void> {
    const { settings, postFilters, files, sender, clock, report, log } = this.#parts
    const { state } = this.#gate
    const { step } = state
    const batch: BatchRollout[] = rollouts.map((rollout) => ({
      rollout,
      filters: applyFilters(postFilters, rollout.detected, rollout.advantage),
    }))
    this.#meanTokens = Math.max(1, tokensOf(rollouts) / rollouts.length)
    const trained = batch.filter(({ filters }) => !filters.isFiltered).map(({ rollout }) => rollout)
    if (trained.length === 0) return this.#skipBatch(batch)
    this.#emptyBatches = 0
    if (trained.length <= 0.1 * batch.length)
      log.warn('few rollouts of the batch can be trained', { step, trainable: trained.length, of: batch.length })
    const samples = trained.flatMap((rollout) => samplesOf(rollout, settings.profile))
    const records = batch.map((one) => trainRecord(one, step))
    for (const { group } of rollouts) group.isShipped = true
    this.#totals.total_tokens += tokensOf(rollouts)
    this.#totals.total_samples += samples.length
    this.#totals.total_problems += new Set(rollouts.map(({ group }) => group)).size
    this.#isSending = true
    const progress = this.#progress(step + 1)
    await files.saveRecords(step, 'train_rollouts.jsonl', records)
    const sentMs = clock.nowMs()
    await sender.send(step, samples, progress, signal)
    // Right after the send: lead counts this batch from here on.
    state.step = step + 1
    this.#isSending = false
    const nowMs = clock.nowMs()
    const times = { step: (nowMs - this.#shippedMs) / 1000, send: (nowMs - sentMs) / 1000, save_ckpt: this.#checkpoint() }
    this.#shippedMs = nowMs
    const counts = this.#sink.takeCounts()
    this.#concurrency?.shipped({ step, nowMs, nextGroup: this.#nextGroup, rollouts: rollouts.map(shippedOf) })
    const values = batchMetrics({ step, batch, counts, totals: this.#totals, times })
    const moves = this.#concurrency?.takeValues()
    report({ kind: 'step', role: 'orchestrator', step, values: { ...values, ...statusValues(this.state), ...moves } })
    this.#changed()
  }

  /** A batch without anything to train is no step. */
  #skipBatch(batch: readonly BatchRollout[]): void {
    this.#emptyBatches++
    const { step } = this.#gate.state
    this.#parts.log.warn('a batch has nothing to train on', { step, rollouts: batch.length, inARow: this.#emptyBatches })
    this.#dispatcher.wake()
    if (this.#emptyBatches < maxEmptyBatches) return
    const hits = new Set(batch.flatMap(({ filters }) => Object.entries(filters.hits).flatMap(([name, isHit]) => (isHit ? [name] : []))))
    throw new TrilithonError(
      'BATCHES_EMPTY',
      `${maxEmptyBatches} batches in a row had nothing to train on; filtered by ${[...hits].join(', ')}`,
      {
        path: 'orchestrator.post_batch_filters',
        hint: 'Look into the rewards: a group teaches something only where they differ.',
        details: { step },
      },
    )
  }

  #progress(step: number): Progress {
    const source = this.#source.position(this.#sink.openTasks)
    const concurrency = this.#concurrency?.position
    return {
      ...{ format: 1, step, ...this.#totals, next_group: this.#nextGroup, source },
      ...(concurrency === undefined ? {} : { concurrency }),
    }
  }

  /** Where it is due; seconds that it took. */
  #checkpoint(): number {
    const { settings, files, clock } = this.#parts
    const { step } = this.#gate.state
    const { checkpointInterval: interval, maxSteps } = settings
    const isLast = maxSteps !== null && step >= maxSteps
    if (files.saveCheckpoint === null || !(isLast || (interval !== null && step % interval === 0))) return 0
    const beginMs = clock.nowMs()
    files.saveCheckpoint(this.#progress(step))
    return (clock.nowMs() - beginMs) / 1000
  }

  /** The last batch is shipped: nothing more is started for training, and evaluations that are due are waited for. */
  async #drain(signal: AbortSignal): Promise<void> {
    const { evals } = this.#parts
    const { state } = this.#gate
    this.#isDraining = true
    await this.#dispatcher.cancel(({ plan }) => plan.kind === 'train', 'end')
    const isDue = () =>
      this.#evaluatedStep < state.step && evals.some(({ interval }) => isBetween(this.#evaluatedStep, state.step, interval))
    while (!signal.aborted && (isDue() || !this.#evals.isIdle)) {
      if (this.#saveFailure !== undefined) throw this.#saveFailure.reason
      await this.#wake.next()
    }
  }

  /** A new run evaluates the weights that it begins with, unless told not to; one that goes on, where they are due. */
  #fireFirstEvals(): void {
    const { evals, isResume, settings, version } = this.#parts
    if (!isResume && settings.skipsFirstEval) return
    const due = isResume ? evals.filter(({ interval }) => version % interval === 0) : evals
    if (due.length > 0) this.#evals.fire(version, due)
  }

  /** An evaluation of step N is of version N, or of the first one after it that serves. */
  #fireDueEvals(): void {
    const { version } = this.#gate.state
    for (const one of this.#parts.evals)
      if (isBetween(this.#evaluatedStep, version, one.interval)) this.#evals.fire(version - (version % one.interval), [one])
    this.#evaluatedStep = Math.max(this.#evaluatedStep, version)
  }

  #evaluated({ step, environment, values, records }: EvalResult): void {
    this.#parts.report({ kind: 'step', role: 'orchestrator', step, values })
    const saving = this.#parts.files
      .saveRecords(step, evalRecordsFile(environment), records)
      .catch((reason: unknown) => {
        this.#saveFailure ??= { reason }
      })
      .finally(() => {
        this.#saving.delete(saving)
        this.#changed()
      })
    this.#saving.add(saving)
  }
}

/** Groups are numbered in the order in which they are begun. */
const idOf = (number: number): string => `g${number}`

const shippedOf = ({ group, facts }: TrainRollout): ShippedRollout => ({
  ...{ group: Number(group.id.slice(1)), modelSeconds: facts.timing.model, tokens: facts.completionTokens },
})

function createConcurrency({ settings, train, evals, version, progress, clock, log }: OrchestratorParts): AdaptiveConcurrency | undefined {
  const { adaptiveConcurrency, maxInflight, batchSize } = settings
  if (adaptiveConcurrency == null) return undefined
  return new AdaptiveConcurrency({
    ...{ settings: adaptiveConcurrency, max: maxInflight, batchSize, version, log, nowMs: clock.nowMs() },
    ...{ nextGroup: progress?.next_group ?? 0, saved: progress?.concurrency },
    largestGroup: Math.max(...[...train, ...evals].map(({ groupSize }) => groupSize)),
  })
}

const tokensOf = (rollouts: readonly TrainRollout[]): number => rollouts.reduce((sum, { facts }) => sum + facts.sequenceTokens, 0)

/** Whether a multiple of `interval` is above `from` and not above `to`. */
const isBetween = (from: number, to: number, interval: number): boolean => Math.floor(to / interval) > Math.floor(from / interval)
