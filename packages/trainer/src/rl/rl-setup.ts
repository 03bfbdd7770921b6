import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { nodeFiles, resolveModelFolder } from '@trilithon/models'
import { prepareOutputFolder } from '@trilithon/monitor'
import { type CheckpointFolder, listTrainingCheckpoints } from '../checkpoint/training-checkpoint.ts'
import type { TrainerConfiguration } from '../configuration/trainer-schema.ts'
import { checkpointRoot } from '../run/run-checkpoints.ts'

/** Everything that the trainer of a run needs to know, as plain data. */
export interface RlSetup {
  readonly config: TrainerConfiguration
  readonly workingDirectory: string
  /** Absolute; that of the whole run. */
  readonly outputFolder: string
  readonly modelFolder: string
  /** Its files go beside weights; null where there is none. */
  readonly tokenizerFolder: string | null
}

export interface RlPlanOptions {
  /** Resolved. */
  readonly config: TrainerConfiguration
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
}

/** Folders of a run, below its own or where the configuration has them. */
export function rlFolders({ config, outputFolder, workingDirectory }: Pick<RlSetup, 'config' | 'outputFolder' | 'workingDirectory'>) {
  const root = checkpointRoot(config.ckpt, outputFolder, workingDirectory)
  const shared = join(outputFolder, 'run_default')
  return {
    /** Of batches, which the orchestrator writes. */
    rollouts: join(shared, 'rollouts'),
    /** Of versions of the weights, which the engines read. */
    broadcasts: join(shared, 'broadcasts'),
    checkpoints: { root: join(root, 'checkpoints'), part: 'trainer', files: nodeFiles } satisfies CheckpointFolder,
    weights: join(root, 'weights'),
    metrics: join(outputFolder, 'metrics', 'trainer.jsonl'),
  }
}

/**
 * Finds the folders of the trainer and makes that of its output ready. Throws `MODEL_NOT_FOUND` and `OUTPUT_UNUSABLE`; then nothing has been changed.
 */
export function prepareRl({ config, workingDirectory, environment }: RlPlanOptions): RlSetup {
  const where = { workingDirectory, environment }
  const modelFolder = resolveModelFolder(config.model.name, { ...where, file: 'config.json', path: 'model.name' })
  const outputFolder = resolve(workingDirectory, config.output_dir)
  const tokenizerFolder = tokenizerFolderOf(config, modelFolder, where)
  prepareOutputFolder(outputFolder, {
    clean: config.clean_output_dir,
    isResume: typeof config.ckpt?.resume_step === 'number',
    checkpointRoot: checkpointRoot(config.ckpt, outputFolder, workingDirectory),
    needed: [workingDirectory, modelFolder, ...(tokenizerFolder === null ? [] : [tokenizerFolder])],
    traces: ['metrics/trainer.jsonl', 'checkpoints', 'weights', 'skipped', 'run_default/broadcasts'],
  })
  return { config, workingDirectory, outputFolder, modelFolder, tokenizerFolder }
}

/** The trainer only copies the tokeniser: a model without one can be trained, a tokeniser that was named has to be there. */
function tokenizerFolderOf(
  { model, tokenizer }: TrainerConfiguration,
  modelFolder: string,
  where: { readonly workingDirectory: string; readonly environment: NodeJS.ProcessEnv },
): string | null {
  if (tokenizer.name === null || tokenizer.name === model.name) return existsSync(join(modelFolder, 'tokenizer.json')) ? modelFolder : null
  return resolveModelFolder(tokenizer.name, { ...where, file: 'tokenizer.json', path: 'tokenizer.name' })
}

/** The batch that comes first: behind the checkpoint that the run resumes from. What is wrong with that is found when it is read. */
export function firstStepOf(setup: Pick<RlSetup, 'config' | 'outputFolder' | 'workingDirectory'>): number {
  const { ckpt } = setup.config
  if (ckpt === null || ckpt.resume_step === null || ckpt.skip_progress) return 0
  return ckpt.resume_step === -1 ? (listTrainingCheckpoints(rlFolders(setup).checkpoints).at(-1) ?? 0) : ckpt.resume_step
}
