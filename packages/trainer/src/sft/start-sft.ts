import { join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Logger, TrilithonError } from '@trilithon/core'
import type { ViewOutput } from '@trilithon/monitor'
import type { SftConfiguration } from '../configuration/sft-schema.ts'
import { resolveModelFolder } from '../run/model-folder.ts'
import { prepareOutputFolder } from '../run/output-folder.ts'
import { reviveError } from '../run/revive-error.ts'
import { BenchReport } from './bench-report.ts'
import { SftMetrics } from './sft-metrics.ts'
import { checkpointRootOf, type SftSetup } from './sft-run.ts'
import { SftView } from './sft-view.ts'
import type { SftMessage, SftWorkerData } from './sft-worker.ts'

export interface SftPlanOptions {
  /** Resolved. */
  readonly config: SftConfiguration
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
}

/**
 * Finds the folders of a run and makes that of its output ready. Throws `MODEL_NOT_FOUND` and `OUTPUT_UNUSABLE`; then nothing has been changed.
 */
export function prepareSft({ config, workingDirectory, environment }: SftPlanOptions): SftSetup {
  const where = { workingDirectory, environment }
  const modelFolder = resolveModelFolder(config.model.name, { ...where, file: 'config.json', path: 'model.name' })
  const readsText = config.data.type === 'sft' || config.val !== null
  const tokenizer = config.tokenizer.name ?? config.model.name
  const tokenizerFolder = readsText ? resolveModelFolder(tokenizer, { ...where, file: 'tokenizer.json', path: 'tokenizer.name' }) : null
  const outputFolder = resolve(workingDirectory, config.output_dir)
  const setup = { config, workingDirectory, outputFolder, modelFolder, tokenizerFolder }
  prepareOutputFolder(outputFolder, {
    clean: config.clean_output_dir,
    isResume: typeof config.ckpt?.resume_step === 'number',
    checkpointRoot: checkpointRootOf(setup),
    needed: [
      workingDirectory,
      modelFolder,
      ...(tokenizerFolder === null ? [] : [tokenizerFolder]),
      ...[config.data, config.val?.data].flatMap((data) => (data?.type === 'sft' ? [resolve(workingDirectory, data.name)] : [])),
    ],
  })
  return setup
}

export interface SftStartOptions {
  readonly setup: SftSetup
  readonly output: ViewOutput
  readonly log: Logger
  /** Ends the run in order: the step that is under way is dropped, a checkpoint that is due is written. */
  readonly signal: AbortSignal
}

/**
 * Trains in a thread of its own; this one writes metrics and shows the run. Resolves when the thread has ended, to whether it was interrupted.
 */
export async function runSft({ setup, output, log, signal }: SftStartOptions): Promise<'done' | 'interrupted'> {
  const { config, outputFolder } = setup
  const abortFlag = new Int32Array(new SharedArrayBuffer(4))
  const data: SftWorkerData = { setup, abortFlag }
  const metrics = new SftMetrics(join(outputFolder, 'metrics.jsonl'))
  const bench = config.bench === null ? null : new BenchReport()
  const view = new SftView({ output, json: config.log.json_logging ? log : null })
  const stop = () => Atomics.store(abortFlag, 0, 1)
  let failure: unknown
  let end: 'done' | 'interrupted' | undefined
  // What this thread cannot do ends the run like a signal, and is what is reported.
  const isolated = (action: () => void) => {
    try {
      action()
    } catch (error) {
      failure ??= error
      stop()
    }
  }
  const worker = new Worker(new URL('./sft-worker.js', import.meta.url), { workerData: data, stdout: false, stderr: false })
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await new Promise<void>((finish) => {
      worker.on('message', (message: SftMessage) => {
        if (message.kind === 'failed') {
          failure ??= reviveError(message.error, message.stack)
          return
        }
        if (message.kind === 'ended') end = message.isInterrupted ? 'interrupted' : 'done'
        isolated(() => {
          metrics.take(message)
          bench?.take(message)
          view.show(message)
        })
      })
      worker.on('error', (error) => {
        failure ??= error
      })
      worker.on('exit', () => finish())
    })
  } finally {
    signal.removeEventListener('abort', stop)
    view.close()
  }
  if (failure !== undefined) throw failure
  if (end === undefined)
    throw new TrilithonError('TASK_FAILED', 'the training thread ended without a word', { hint: 'Run with --verbose.' })
  if (bench !== null && end === 'done') {
    if (config.bench?.output_json) bench.write(resolve(setup.workingDirectory, config.bench.output_json))
    log.info('measured', bench.values())
  }
  return end
}
