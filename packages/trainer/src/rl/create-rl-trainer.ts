import { type FileLayer, TrilithonError } from '@trilithon/core'
import { countParameters, type Model, nodeFiles } from '@trilithon/models'
import type { Optimiser } from '@trilithon/tensor'
import { createLosses } from '../loss/create-losses.ts'
import type { Loss } from '../loss/loss.ts'
import { prepareBatch } from '../packing/prepare-batch.ts'
import { diskMetrics } from '../run/disk-metrics.ts'
import { FlopsMeter } from '../run/flops-meter.ts'
import { openModel } from '../run/open-model.ts'
import { RunCheckpoints } from '../run/run-checkpoints.ts'
import { chatTemplateOf, tokenizerDocuments } from '../run/tokenizer-documents.ts'
import { trainingState } from '../run/training-state.ts'
import { createOptimiser } from '../step/create-optimiser.ts'
import { learningRate } from '../step/learning-rate.ts'
import { SkipStreak } from '../step/skip-streak.ts'
import { saveSkippedSamples } from '../step/skipped-samples.ts'
import { type TrainStepParts, type TrainStepReport, trainStep } from '../step/train-step.ts'
import { PolicyPublisher } from './policy-publisher.ts'
import type { RlBatch, RlListener } from './rl-event.ts'
import { type RlSetup, rlFolders } from './rl-setup.ts'
import { GateMemory, SampleGate } from './sample-gate.ts'
import { withoutRoutes } from './without-routes.ts'

export interface RlTrainerOptions {
  readonly setup: RlSetup
  readonly listener?: RlListener
  readonly files?: FileLayer
}

/** The trainer of RL as an object: it computes in the thread that calls it. */
export interface RlTrainer {
  readonly model: Model
  /** Version of the weights, and the number of the batch that comes next. */
  readonly version: number
  /** Whether `max_steps` were made. */
  readonly isFinished: boolean
  /**
   * Trains version N into N + 1 on batch N, publishes it, and writes the checkpoint that is due. `waitedSeconds` is told in the metrics.
   *
   * Throws `ROLLOUTS_INVALID` for another batch than the one that is due, `SAMPLE_INVALID` for a sample that may not be trained: nothing has changed then.
   */
  step(batch: RlBatch & { readonly waitedSeconds?: number }): Promise<TrainStepReport>
  /** Writes the last checkpoint and weights; where no step was made, only at the end of a whole run. */
  finish(isInterrupted?: boolean): void
  dispose(): void
}

/** Loads the model, or the checkpoint to resume from, whose weights are published then. On failure nothing is left behind. */
export async function createRlTrainer({ setup, listener = () => undefined, files = nodeFiles }: RlTrainerOptions): Promise<RlTrainer> {
  const { config, modelFolder, workingDirectory } = setup
  const losses = await createLosses(config.loss, workingDirectory)
  const model = openModel(config.model, modelFolder, files)
  let optimiser: Optimiser | undefined
  let trainer: EmbeddedRlTrainer | undefined
  try {
    optimiser = createOptimiser(model.parameters(), config.optim)
    trainer = new EmbeddedRlTrainer({ setup, model, optimiser, losses, listener, files })
    await trainer.start()
    return trainer
  } catch (error) {
    if (trainer === undefined) {
      optimiser?.dispose()
      model.dispose()
    } else trainer.dispose()
    throw error
  }
}

interface Parts {
  readonly setup: RlSetup
  readonly model: Model
  readonly optimiser: Optimiser
  readonly losses: TrainStepParts['losses'] & Readonly<Record<string, Loss>>
  readonly listener: RlListener
  readonly files: FileLayer
}

class EmbeddedRlTrainer implements RlTrainer {
  readonly model: Model
  version = 0
  readonly #parts: Parts
  readonly #stepParts: TrainStepParts
  readonly #checkpoints: RunCheckpoints
  readonly #gate: SampleGate
  readonly #streak: SkipStreak
  readonly #flops: FlopsMeter
  #publisher: PolicyPublisher | undefined
  #first = 0
  #firstScheduled = 0
  #totals: Record<string, number> = { tokens: 0, samples: 0, skipped_steps: 0 }
  /** Of the checkpoint that was written since the last step. */
  #saveSeconds: number | null = null

  constructor(parts: Parts) {
    const { setup, model, optimiser, losses, files } = parts
    const { config } = setup
    const folders = rlFolders(setup)
    this.model = model
    this.#parts = parts
    this.#streak = new SkipStreak(setup.outputFolder)
    this.#flops = new FlopsMeter({ config: model.config, trainsIndexers: config.model.index_kl_weight > 0 })
    this.#gate = new SampleGate({
      profile: config.numerics_profile,
      maxLag: config.max_off_policy_steps,
      seqLen: config.model.seq_len,
      model: model.config,
    })
    this.#stepParts = {
      model,
      optimiser,
      losses,
      maxNorm: config.optim.max_norm,
      recompute: config.model.ac !== null,
      indexKlWeight: config.model.index_kl_weight,
    }
    this.#checkpoints = new RunCheckpoints({
      ckpt: config.ckpt,
      profile: config.numerics_profile,
      folder: { ...folders.checkpoints, files },
      weights: folders.weights,
      model,
      state: trainingState(model, optimiser),
      documents: tokenizerDocuments(setup.tokenizerFolder, chatTemplateOf(config.tokenizer.chat_template, setup.workingDirectory)),
    })
  }

  get isFinished(): boolean {
    const { max_steps: maxSteps } = this.#parts.setup.config
    return maxSteps !== null && this.version >= maxSteps
  }

  /** Version 0 is the folder of the model; what a checkpoint holds has to be published before anyone can sample from it. */
  async start(): Promise<void> {
    const { ckpt } = this.#parts.setup.config
    const progress = this.#checkpoints.resume()
    if (progress !== null && ckpt !== null) {
      if (!ckpt.skip_dataloader) this.#gate.remember(GateMemory.parse(progress.data))
      if (!ckpt.skip_progress) {
        this.version = progress.step
        this.#totals = { ...progress.totals }
      }
      if (ckpt.skip_scheduler) this.#firstScheduled = this.version
    }
    this.#first = this.version
    const { setup, model, listener } = this.#parts
    const { max_steps: lastVersion, numerics_profile: profile } = setup.config
    const { broadcasts } = rlFolders(setup)
    this.#publisher = new PolicyPublisher({ model, broadcasts, profile, firstVersion: this.version, lastVersion })
    const parameters = countParameters(model.specs)
    const trainable = [...model.parameters()].reduce((sum, { isTrainable, elements }) => sum + (isTrainable ? elements : 0), 0)
    listener({ kind: 'started', step: this.version, parameters, trainable })
    if (progress !== null) await this.#publish()
  }

  async step({ step, samples, waitedSeconds = 0 }: RlBatch & { readonly waitedSeconds?: number }): Promise<TrainStepReport> {
    const { setup, listener, files } = this.#parts
    const { config } = setup
    if (step !== this.version)
      throw new TrilithonError('ROLLOUTS_INVALID', `batch ${step} came where batch ${this.version} is due`, {
        path: rlFolders(setup).rollouts,
        hint: 'Start trainer and orchestrator from the same step.',
      })
    const begin = performance.now()
    const lags = this.#gate.check(step, samples)
    const [microBatches = []] = prepareBatch(samples.map(withoutRoutes), { seqLen: config.model.seq_len, workers: 1 })
    const packed = performance.now()
    const rate = learningRate(config.scheduler, config.optim.lr, step - this.#firstScheduled, config.max_steps)
    const report = trainStep(this.#stepParts, { microBatches, learningRate: rate, version: step })
    const trained = performance.now()
    this.#gate.note(step, samples)
    this.version++
    this.#totals = {
      tokens: (this.#totals.tokens ?? 0) + report.tokens,
      samples: (this.#totals.samples ?? 0) + samples.length,
      skipped_steps: (this.#totals.skipped_steps ?? 0) + Number(report.skipped !== null),
    }
    if (report.skipped !== null) {
      const { reason, samples: bad } = report.skipped
      const path = saveSkippedSamples(files, setup.outputFolder, step, reason, bad)
      listener({ kind: 'skipped', step, reason, samples: bad.map(({ id }) => id), path })
    }
    // A step that was skipped has a version too, of the same bits: others count on it.
    const publishing = await this.#publish()
    const seconds = waitedSeconds + (performance.now() - begin) / 1000
    const peakBytes = process.resourceUsage().maxRSS * 1024
    listener({
      kind: 'step',
      step,
      tokens: report.tokens,
      seconds,
      peakBytes,
      metrics: {
        ...(config.data.fake === null ? report.metrics : withoutMismatch(report.metrics)),
        'lag/mean': lags.reduce((sum, lag) => sum + lag, 0) / lags.length,
        'lag/max': Math.max(...lags),
        'progress/tokens': report.tokens,
        'progress/loss_tokens': report.lossTokens,
        'progress/samples': samples.length,
        'progress/total_tokens': this.#totals.tokens ?? 0,
        'progress/total_samples': this.#totals.samples ?? 0,
        'progress/skipped_steps': this.#totals.skipped_steps ?? 0,
        'time/step': seconds,
        'time/wait_for_batch': waitedSeconds,
        'time/load_data': (packed - begin) / 1000,
        'time/forward_backward': (trained - packed) / 1000,
        'time/broadcast_weights': publishing,
        ...(this.#saveSeconds === null ? {} : { 'time/save_ckpt': this.#saveSeconds }),
        'perf/throughput': report.tokens / seconds,
        ...this.#flops.values(microBatches, (trained - packed) / 1000),
        'perf/peak_memory': peakBytes / 2 ** 30,
        ...diskMetrics(rlFolders(setup).checkpoints.root),
      },
    })
    this.#saveSeconds = null
    this.#streak.note(report.skipped !== null)
    if (this.#checkpoints.isDue(this.version) && !this.isFinished) this.#save()
    return report
  }

  finish(isInterrupted = false): void {
    if (this.version > this.#first || !isInterrupted) this.#save()
    this.#parts.listener({ kind: 'ended', step: this.version, isInterrupted })
  }

  dispose(): void {
    const { optimiser, model } = this.#parts
    this.#publisher?.dispose()
    optimiser.dispose()
    model.dispose()
  }

  /** Seconds that it took. */
  async #publish(): Promise<number> {
    const { listener } = this.#parts
    const begin = performance.now()
    await this.#publisher?.publish(this.version)
    const seconds = (performance.now() - begin) / 1000
    listener({ kind: 'published', version: this.version, seconds })
    return seconds
  }

  #save(): void {
    if (this.#parts.setup.config.ckpt === null) return
    this.#parts.listener({ kind: 'saving', step: this.version })
    const saved = this.#checkpoints.save({ step: this.version, data: this.#gate.memory, random: {}, totals: this.#totals })
    if (saved === null) return
    this.#saveSeconds = saved.seconds
    this.#parts.listener({ kind: 'saved', step: this.version, ...saved })
  }
}

/** Made-up tokens were sampled by nobody that the trainer could agree with. */
function withoutMismatch(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => !/^(mismatch_kl|tokens|kl_ent_ratio)\//.test(name)))
}
