import { join } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { countParameters, type Model, nodeFiles } from '@trilithon/models'
import { noGrad, type Optimiser, scope } from '@trilithon/tensor'
import type { SftConfiguration } from '../configuration/sft-schema.ts'
import type { DataLoader } from '../data/data-loader.ts'
import { type DataPosition, dataStart } from '../data/document-source.ts'
import { opdLoss, sftLoss } from '../loss/policy-loss.ts'
import { diskMetrics } from '../run/disk-metrics.ts'
import { FlopsMeter } from '../run/flops-meter.ts'
import { openModel } from '../run/open-model.ts'
import { checkpointRoot, RunCheckpoints } from '../run/run-checkpoints.ts'
import { chatTemplateOf, tokenizerDocuments } from '../run/tokenizer-documents.ts'
import { trainingState } from '../run/training-state.ts'
import { createOptimiser } from '../step/create-optimiser.ts'
import { learningRate } from '../step/learning-rate.ts'
import { SkipStreak } from '../step/skip-streak.ts'
import { saveSkippedSamples } from '../step/skipped-samples.ts'
import { scoreMicroBatch, type TrainStepParts, trainStep } from '../step/train-step.ts'
import { openData, type SftData } from './open-data.ts'
import type { SftListener } from './sft-event.ts'

/** Everything that a run needs to know, as plain data. */
export interface SftSetup {
  readonly config: SftConfiguration
  readonly workingDirectory: string
  /** Absolute. */
  readonly outputFolder: string
  readonly modelFolder: string
  /** null where only made-up data is read. */
  readonly tokenizerFolder: string | null
}

export interface SftRunOptions {
  readonly setup: SftSetup
  readonly listener: SftListener
  /** Asked between two steps; the native ops have an abort flag of their own for what is in between. */
  readonly isStopped: () => boolean
  readonly files?: FileLayer
}

/**
 * A whole run, in the thread that it is called in: it computes without a pause until it ends. Throws what ends it otherwise; whatever happens, no
 * tensor is left behind.
 */
export async function runSftHere({ setup, listener, isStopped, files = nodeFiles }: SftRunOptions): Promise<void> {
  const model = openModel(setup.config.model, setup.modelFolder, files)
  let optimiser: Optimiser | undefined
  let data: SftData | undefined
  try {
    optimiser = createOptimiser(model.parameters(), setup.config.optim)
    data = await openData({ ...setup, model })
    new SftRun(setup, model, optimiser, data, listener, isStopped, files).run()
  } finally {
    data?.close()
    optimiser?.dispose()
    model.dispose()
  }
}

class SftRun {
  private readonly setup: SftSetup
  private readonly model: Model
  private readonly data: SftData
  private readonly listener: SftListener
  private readonly isStopped: () => boolean
  private readonly files: FileLayer
  private readonly parts: TrainStepParts
  private readonly checkpoints: RunCheckpoints
  private readonly checkpointFolder: string
  private readonly flops: FlopsMeter
  /** Optimiser steps behind the weights, and where the data stands behind them. */
  private step = 0
  private firstScheduled = 0
  private position: DataPosition = dataStart
  private totals: Record<string, number> = { tokens: 0, documents: 0, skipped_steps: 0 }

  constructor(
    setup: SftSetup,
    model: Model,
    optimiser: Optimiser,
    data: SftData,
    listener: SftListener,
    isStopped: () => boolean,
    files: FileLayer,
  ) {
    const { config } = setup
    this.setup = setup
    this.model = model
    this.data = data
    this.listener = listener
    this.isStopped = isStopped
    this.files = files
    const root = checkpointRoot(config.ckpt, setup.outputFolder, setup.workingDirectory)
    this.checkpointFolder = join(root, 'checkpoints')
    this.flops = new FlopsMeter({ config: model.config, trainsIndexers: config.model.index_kl_weight > 0 })
    this.checkpoints = new RunCheckpoints({
      ckpt: config.ckpt,
      profile: config.numerics_profile,
      folder: { root: this.checkpointFolder, files },
      weights: join(root, 'weights'),
      model,
      state: trainingState(model, optimiser),
      documents: tokenizerDocuments(setup.tokenizerFolder, chatTemplateOf(config.tokenizer.chat_template, setup.workingDirectory)),
    })
    this.parts = {
      model,
      optimiser,
      losses: { rl: sftLoss, opd: opdLoss, sft: sftLoss },
      maxNorm: config.optim.max_norm,
      recompute: config.model.ac !== null,
      indexKlWeight: config.model.index_kl_weight,
    }
  }

  run(): void {
    const { config } = this.setup
    const { max_steps: maxSteps, val, ckpt } = config
    this.resume()
    const loader = this.data.open(this.position)
    this.listener({
      kind: 'started',
      step: this.step,
      maxSteps,
      parameters: countParameters(this.model.specs),
      trainable: [...this.model.parameters()].reduce((sum, { isTrainable, elements }) => sum + (isTrainable ? elements : 0), 0),
      rows: this.data.rows,
    })
    const first = this.step
    let isInterrupted = false
    try {
      if (val?.eval_on_start === true && first === 0) this.validate()
      const streak = new SkipStreak(this.setup.outputFolder)
      for (;;) {
        const isLast = maxSteps !== null && this.step >= maxSteps
        if (this.checkpoints.isDue(this.step) && this.step > first && !isLast) this.save()
        if (isLast) break
        if (this.isStopped()) {
          isInterrupted = true
          break
        }
        streak.note(!this.trainOnce(loader))
        if (val !== null && this.step % val.interval === 0) this.validate()
      }
    } catch (error) {
      // What was under way is dropped: the state is that of the last whole step.
      if (!TrilithonError.is(error, 'NATIVE_ABORTED')) throw error
      isInterrupted = true
    }
    if (ckpt !== null && (this.step > first || !isInterrupted)) this.save()
    this.listener({ kind: 'ended', step: this.step, isInterrupted })
  }

  /** Makes one step; false where it was skipped. */
  private trainOnce(loader: DataLoader): boolean {
    const { config, outputFolder } = this.setup
    const begin = performance.now()
    const batch = loader.next()
    if (batch === undefined) throw new TrilithonError('INVARIANT_BROKEN', 'the data of training has an end')
    const loaded = performance.now()
    const rate = learningRate(config.scheduler, config.optim.lr, this.step - this.firstScheduled, config.max_steps)
    const report = trainStep(this.parts, { microBatches: batch.microBatches, learningRate: rate, version: this.step })
    const seconds = (performance.now() - begin) / 1000
    this.step++
    this.position = batch.position
    this.totals = {
      tokens: (this.totals.tokens ?? 0) + batch.tokens,
      documents: (this.totals.documents ?? 0) + batch.documents,
      skipped_steps: (this.totals.skipped_steps ?? 0) + Number(report.skipped !== null),
    }
    if (report.skipped !== null) {
      const { reason, samples } = report.skipped
      const path = saveSkippedSamples(this.files, outputFolder, this.step, reason, samples)
      this.listener({ kind: 'skipped', step: this.step, reason, samples: samples.map(({ id }) => id), path })
      return false
    }
    const peakBytes = process.resourceUsage().maxRSS * 1024
    this.listener({
      kind: 'step',
      step: this.step,
      loss: report.loss,
      tokens: batch.tokens,
      gradientNorm: report.gradientNorm,
      learningRate: rate,
      seconds,
      peakBytes,
      metrics: {
        loss: report.loss,
        ...report.metrics,
        'progress/tokens': batch.tokens,
        'progress/loss_tokens': batch.lossTokens,
        'progress/documents': batch.documents,
        'progress/skipped_documents': batch.skippedDocuments,
        'progress/cut_tokens': batch.cutTokens,
        'progress/total_tokens': this.totals.tokens ?? 0,
        'progress/epoch': batch.position.epoch,
        'time/step': seconds,
        'time/load_data': (loaded - begin) / 1000,
        'time/forward_backward': seconds - (loaded - begin) / 1000,
        'perf/throughput': batch.tokens / seconds,
        ...this.flops.values(batch.microBatches, seconds - (loaded - begin) / 1000),
        'perf/peak_memory': peakBytes / 2 ** 30,
        ...diskMetrics(this.checkpointFolder),
      },
    })
    return true
  }

  private validate(): void {
    if (this.data.openValidation === null) return
    const begin = performance.now()
    const loader = this.data.openValidation()
    let sum = 0
    let count = 0
    for (let batch = loader.next(); batch !== undefined; batch = loader.next())
      for (const micro of batch.microBatches) {
        const logprobs = noGrad(() => scope(() => scoreMicroBatch({ model: this.model, recompute: false }, micro).logprobs))
        for (const [token, flag] of micro.mask.entries()) {
          if (flag !== 1) continue
          sum -= logprobs[token] ?? 0
          count++
        }
      }
    this.listener({
      kind: 'validated',
      step: this.step,
      loss: sum / Math.max(1, count),
      tokens: count,
      seconds: (performance.now() - begin) / 1000,
    })
  }

  private resume(): void {
    const progress = this.checkpoints.resume()
    const { ckpt } = this.setup.config
    if (progress === null || ckpt === null) return
    if (!ckpt.skip_dataloader) this.position = progress.data as unknown as DataPosition
    if (!ckpt.skip_progress) {
      this.step = progress.step
      this.totals = { ...progress.totals }
    }
    if (ckpt.skip_scheduler) this.firstScheduled = this.step
  }

  private save(): void {
    const { data } = this.setup.config
    const saved = this.checkpoints.save({
      step: this.step,
      data: { ...this.position },
      random: { seed: data.type === 'sft' ? data.seed : 0 },
      totals: this.totals,
    })
    if (saved !== null) this.listener({ kind: 'saved', step: this.step, ...saved })
  }
}
