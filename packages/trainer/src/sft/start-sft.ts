import { join, resolve } from 'node:path'
import type { Logger } from '@trilithon/core'
import { resolveModelFolder } from '@trilithon/models'
import { prepareOutputFolder, type ViewOutput } from '@trilithon/monitor'
import type { SftConfiguration } from '../configuration/sft-schema.ts'
import { BenchReport } from '../run/bench-report.ts'
import { checkpointRoot } from '../run/run-checkpoints.ts'
import { runTrainingThread } from '../run/training-thread.ts'
import type { SftEvent } from './sft-event.ts'
import { SftMetrics } from './sft-metrics.ts'
import type { SftSetup } from './sft-run.ts'
import { SftView } from './sft-view.ts'

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
    checkpointRoot: checkpointRoot(config.ckpt, outputFolder, workingDirectory),
    traces: ['metrics.jsonl', 'checkpoints', 'weights', 'skipped'],
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
  const metrics = new SftMetrics(join(outputFolder, 'metrics.jsonl'))
  const bench = config.bench === null ? null : new BenchReport()
  const view = new SftView({ output, json: config.log.json_logging ? log : null })
  let end: 'done' | 'interrupted'
  try {
    end = await runTrainingThread<SftEvent>({
      entry: new URL('./sft-worker.js', import.meta.url),
      profile: config.numerics_profile,
      setup,
      signal,
      onEvent(event) {
        const known = event as SftEvent
        metrics.take(known)
        if (known.kind === 'step') bench?.take(known)
        view.show(known)
      },
    })
  } finally {
    view.close()
  }
  if (bench !== null && end === 'done') {
    if (config.bench?.output_json) bench.write(resolve(setup.workingDirectory, config.bench.output_json))
    log.info('measured', bench.values())
  }
  return end
}
