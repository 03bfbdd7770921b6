import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { combineProblems, TrilithonError } from '@trilithon/core'
import { prepareOutputFolder } from '@trilithon/monitor'
import { lastShippedStep, readProgress, rolloutFiles, rolloutStepFolder } from '@trilithon/transport'
import { environmentProblems } from '../configuration/environment-problems.ts'
import type { OrchestratorConfiguration } from '../configuration/orchestrator-schema.ts'
import type { Progress } from '../progress/progress.ts'
import { findProgress } from '../progress/resume.ts'

/** Everything that the orchestrator of a run needs to know. */
export interface OrchestratorSetup {
  readonly config: OrchestratorConfiguration
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
  /** Absolute; the orchestrator's own, inside that of the run. */
  readonly outputFolder: string
  readonly tokenizerFolder: string
  readonly chatTemplate: { readonly text: string; readonly file: string } | null
  readonly vocabSize: number
  /** The version that the trainer goes on with, and where the orchestrator goes on; null begins a run. */
  readonly resume: { readonly step: number; readonly progress: Progress } | null
}

export interface OrchestratorPlanOptions {
  /** Resolved. */
  readonly config: OrchestratorConfiguration
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
}

export const orchestratorFolders = (outputFolder: string) => ({
  rollouts: join(outputFolder, 'rollouts'),
  broadcasts: join(outputFolder, 'broadcasts'),
  checkpoints: join(outputFolder, 'checkpoints'),
  run: resolve(outputFolder, '..'),
})

/**
 * Finds what the orchestrator needs and makes its folder ready. Throws `ENVIRONMENT_INVALID`, `MODEL_NOT_FOUND`, `MODEL_CONFIG_INVALID`, `FEATURE_UNAVAILABLE`, `RESUME_IMPOSSIBLE` and
 * `OUTPUT_UNUSABLE`; then nothing has been changed.
 */
export async function prepareOrchestrator({ config, workingDirectory, environment }: OrchestratorPlanOptions): Promise<OrchestratorSetup> {
  // Models bring the native addon; nothing but a start loads it.
  const { parseModelConfig, resolveModelFolder } = await import('@trilithon/models')
  refuseUnavailable(config)
  const problems = environmentProblems(config, workingDirectory)
  if (problems.length > 0) throw combineProblems(problems)
  const where = { workingDirectory, environment }
  const { model } = config.student
  const modelFolder = resolveModelFolder(model.name, { ...where, file: 'config.json', path: 'student.model.name' })
  const tokenizer = config.tokenizer.name ?? model.name
  const tokenizerFolder = resolveModelFolder(tokenizer, { ...where, file: 'tokenizer.json', path: 'tokenizer.name' })
  const configPath = join(modelFolder, 'config.json')
  const { vocabSize } = parseModelConfig(JSON.parse(readFileSync(configPath, 'utf8')), configPath)
  const outputFolder = resolve(workingDirectory, config.output_dir)
  const resumeStep = config.ckpt?.resume_step ?? null
  const resume = resumeStep === null ? null : findResume(outputFolder, resumeStep)
  prepareOutputFolder(outputFolder, {
    ...{ clean: false, isResume: resume !== null, checkpointRoot: outputFolder, needed: [] },
    traces: ['rollouts', 'checkpoints'],
  })
  return {
    ...{ config, workingDirectory, environment, outputFolder, tokenizerFolder, vocabSize, resume },
    chatTemplate: findChatTemplate(config.tokenizer.chat_template, workingDirectory),
  }
}

function findResume(outputFolder: string, resumeStep: number) {
  const { rollouts, checkpoints } = orchestratorFolders(outputFolder)
  return findProgress({
    ...{ checkpoints, resumeStep },
    shipped: {
      lastShipped: () => lastShippedStep(rollouts),
      has: (step) => existsSync(join(rolloutStepFolder(rollouts, step), rolloutFiles.batch)),
      progressOf: (step) => readProgress(rollouts, step),
    },
  })
}

/** A template is a text, or the path of a file that has one. */
function findChatTemplate(given: string | null, workingDirectory: string): OrchestratorSetup['chatTemplate'] {
  if (given === null) return null
  const file = resolve(workingDirectory, given)
  return !given.includes('\n') && existsSync(file)
    ? { text: readFileSync(file, 'utf8'), file }
    : { text: given, file: 'tokenizer.chat_template' }
}

/** Values that parse, and whose feature is not built. */
function refuseUnavailable(config: OrchestratorConfiguration): void {
  const { training_mode, renderer, num_train_workers, student, weight_broadcast } = config
  const refuse = (path: string, message: string, hint: string) => {
    throw new TrilithonError('FEATURE_UNAVAILABLE', message, { path, hint })
  }
  if (training_mode !== 'rl')
    refuse('training_mode', `training_mode "${training_mode}" needs a teacher, and teachers are not built yet`, 'Set training_mode = "rl".')
  const { type }: { readonly type: string } = weight_broadcast
  if (type !== 'filesystem') refuse('weight_broadcast.type', `Weights do not travel by ${type} yet`, 'Set it to "filesystem".')
  if (renderer === null) refuse('renderer', 'Episodes over the chat route are not built yet', 'Choose a renderer, as "default".')
  if (num_train_workers > 1) refuse('num_train_workers', `${num_train_workers} data ranks train, and one process trains`, 'Set it to 1.')
  for (const [header, field] of Object.entries(student.client.extra_headers_from_state))
    if (!(field in stateFields))
      refuse(
        `student.client.extra_headers_from_state.${header}`,
        `An episode has no field ${field}`,
        `Choose one of ${Object.keys(stateFields).join(', ')}.`,
      )
}

/** Fields of an episode that a header may take its value from. */
export const stateFields = {
  trajectory_id: ({ rolloutId }) => rolloutId,
  rollout_id: ({ rolloutId }) => rolloutId,
  group_id: ({ groupId }) => groupId,
  example_id: ({ taskIndex }) => String(taskIndex),
} as const satisfies Record<string, (episode: { rolloutId: string; groupId: string; taskIndex: number }) => string>
