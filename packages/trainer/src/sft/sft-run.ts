import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { countParameters, createModel, loadModel, type Model, nodeFiles, readModelConfig, saveModel } from '@trilithon/models'
import { noGrad, type Optimiser, scope } from '@trilithon/tensor'
import {
  keptSteps,
  listTrainingCheckpoints,
  loadTrainingCheckpoint,
  saveTrainingCheckpoint,
  type TrainingProgress,
} from '../checkpoint/training-checkpoint.ts'
import type { SftConfiguration } from '../configuration/sft-schema.ts'
import type { DataLoader } from '../data/data-loader.ts'
import { type DataPosition, dataStart } from '../data/document-source.ts'
import { opdLoss, sftLoss } from '../loss/policy-loss.ts'
import { createOptimiser } from '../step/create-optimiser.ts'
import { learningRate } from '../step/learning-rate.ts'
import { saveSkippedSamples } from '../step/skipped-samples.ts'
import { scoreMicroBatch, type TrainStepParts, trainStep } from '../step/train-step.ts'
import { openData, type SftData } from './open-data.ts'
import type { SftListener } from './sft-event.ts'
import { optimiserPrefix, type TrainingState, trainingState } from './training-state.ts'

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

/** Steps in a row that may be skipped before the run ends: it would go on like that. */
const mostSkipped = 20
/** Files of a model folder that belong to the tokeniser. */
const tokenizerFiles = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'generation_config.json',
  'special_tokens_map.json',
]

/**
 * A whole run, in the thread that it is called in: it computes without a pause until it ends. Throws what ends it otherwise; whatever happens, no
 * tensor is left behind.
 */
export async function runSftHere({ setup, listener, isStopped, files = nodeFiles }: SftRunOptions): Promise<void> {
  const model = openModel(setup, files)
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

function openModel({ config, modelFolder }: SftSetup, files: FileLayer): Model {
  const options = { indexKlWeight: config.model.index_kl_weight }
  if (config.model.debug.random_init) {
    const { config: modelConfig, text } = readModelConfig(modelFolder, files)
    return createModel(modelConfig, { ...options, seed: 0, configText: text })
  }
  return loadModel(modelFolder, { ...options, files }).model
}

class SftRun {
  private readonly setup: SftSetup
  private readonly model: Model
  private readonly data: SftData
  private readonly listener: SftListener
  private readonly isStopped: () => boolean
  private readonly files: FileLayer
  private readonly parts: TrainStepParts
  private readonly state: TrainingState
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
    this.state = trainingState(model, optimiser)
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
      let skipped = 0
      for (;;) {
        const isLast = maxSteps !== null && this.step >= maxSteps
        if (ckpt?.interval && this.step % ckpt.interval === 0 && this.step > first && !isLast) this.save()
        if (isLast) break
        if (this.isStopped()) {
          isInterrupted = true
          break
        }
        skipped = this.trainOnce(loader) ? 0 : skipped + 1
        if (skipped === mostSkipped)
          throw new TrilithonError(
            'TASK_FAILED',
            `${mostSkipped} steps in a row were skipped because their loss or gradient was not finite`,
            {
              path: join(this.setup.outputFolder, 'skipped'),
              hint: 'Look at the samples of the skipped steps; lower optim.lr if they are sound.',
            },
          )
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
        'perf/peak_memory': peakBytes / 2 ** 30,
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

  private get checkpointRoot(): string {
    return checkpointRootOf(this.setup)
  }

  private get folder() {
    return { root: join(this.checkpointRoot, 'checkpoints'), files: this.files }
  }

  private resume(): void {
    const { ckpt } = this.setup.config
    if (ckpt?.resume_step === null || ckpt?.resume_step === undefined) return
    const later = listTrainingCheckpoints(this.folder).filter((step) => ckpt.resume_step !== -1 && step > (ckpt.resume_step ?? 0))
    if (later.length > 0)
      throw new TrilithonError(
        'OUTPUT_UNUSABLE',
        `${this.folder.root} has checkpoints behind step ${ckpt.resume_step}: ${later.join(', ')}; this run would come to the same steps again`,
        { path: 'ckpt.resume_step', hint: 'Move those away first, or resume from the last with -1.' },
      )
    const isTaken = (name: string) => !(ckpt.skip_optimizer && name.startsWith(optimiserPrefix))
    const progress = loadTrainingCheckpoint(
      this.folder,
      ckpt.resume_step,
      this.state.tensors.filter(({ name }) => isTaken(name)),
      (name, first, values) => this.state.take(name, first, values),
      (name) => !isTaken(name),
    )
    this.refuseProfile(progress)
    if (!ckpt.skip_dataloader) this.position = progress.data as unknown as DataPosition
    if (!ckpt.skip_progress) {
      this.step = progress.step
      this.totals = { ...progress.totals }
    }
    if (ckpt.skip_scheduler) this.firstScheduled = this.step
  }

  private refuseProfile({ profile }: TrainingProgress): void {
    const { numerics_profile: wanted } = this.setup.config
    if (profile === wanted) return
    throw new TrilithonError('CHECKPOINT_INVALID', `the checkpoint was computed under the profile ${profile}, and the run has ${wanted}`, {
      path: 'numerics_profile',
      hint: `Set numerics_profile = "${profile}".`,
    })
  }

  /** The training state first: weights without one cannot be gone on from. */
  private save(): void {
    const { config, tokenizerFolder } = this.setup
    const { ckpt } = config
    if (ckpt === null) return
    const begin = performance.now()
    const keep = { keepLast: ckpt.keep_last, keepInterval: ckpt.keep_interval }
    if (!ckpt.weights_only)
      saveTrainingCheckpoint(
        this.folder,
        this.state.tensors,
        (name, first, into) => this.state.give(name, first, into),
        {
          step: this.step,
          profile: config.numerics_profile,
          data: { ...this.position },
          random: { seed: config.data.type === 'sft' ? config.data.seed : 0 },
          totals: this.totals,
          plan: { ranks: 1 },
        },
        keep,
      )
    const weights = join(this.checkpointRoot, 'weights')
    if (ckpt.weights !== null) {
      const path = join(weights, `step_${this.step}`)
      // There from a run that ended in between: it has the same bits.
      if (!this.files.exists(path)) {
        this.files.makeFolder(weights)
        saveModel(this.model, path, {
          files: this.files,
          documents: { ...documentsOf(tokenizerFolder), STABLE: '' },
          ...(ckpt.weights.save_sharded ? {} : { maxShardBytes: Number.MAX_SAFE_INTEGER }),
        })
      }
      this.pruneWeights(weights, keep)
    }
    const path = ckpt.weights_only ? join(weights, `step_${this.step}`) : join(this.folder.root, `step_${this.step}`)
    this.listener({ kind: 'saved', step: this.step, path, seconds: (performance.now() - begin) / 1000 })
  }

  private pruneWeights(root: string, keep: { keepLast: number | null; keepInterval: number | null }): void {
    const steps = this.files.list(root).flatMap((name) => (/^step_\d+$/.test(name) ? [Number(name.slice(5))] : []))
    const kept = keptSteps(
      steps.sort((a, b) => a - b),
      keep,
    )
    for (const step of steps) if (!kept.has(step)) this.files.remove(join(root, `step_${step}`))
  }
}

/** Where `checkpoints` and `weights` are. */
export function checkpointRootOf({
  config,
  outputFolder,
  workingDirectory,
}: Pick<SftSetup, 'config' | 'outputFolder' | 'workingDirectory'>): string {
  const own = config.ckpt?.output_dir
  return own === null || own === undefined ? outputFolder : resolve(workingDirectory, own)
}

function documentsOf(folder: string | null): Record<string, string> {
  if (folder === null) return {}
  const found = tokenizerFiles.filter((name) => existsSync(join(folder, name)))
  return Object.fromEntries(found.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}
