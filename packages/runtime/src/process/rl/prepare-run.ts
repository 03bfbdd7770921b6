import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { combineProblems, rolloutPorts, TrilithonError } from '@trilithon/core'
import { type OutputFolderOptions, prepareOutputFolder, unusableOutput } from '@trilithon/monitor'
import { environmentProblems } from '@trilithon/orchestrator/configuration'
import type { RlConfiguration } from '../../roots/rl-configuration.ts'
import { busyPorts } from './check-ports.ts'
import { enginePorts } from './plan-roles.ts'
import { type ResumeStep, resolveResumeStep } from './resume-step.ts'

/** What a run leaves; `configs` and `logs` alone are from one that never came to work. */
const traces = [
  ...['metrics.jsonl', 'metrics', 'checkpoints', 'weights', 'skipped'],
  ...['rollouts', 'broadcasts', 'checkpoints'].map((name) => join('run_default', name)),
]

export interface PrepareRunOptions {
  readonly config: RlConfiguration
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
  /** What is known to stop the run already. */
  readonly problems?: readonly TrilithonError[]
}

export interface PreparedRun {
  /** Absolute. */
  readonly folder: string
  /** The step to resume from; null for a run that begins anew. */
  readonly resumeStep: number | null
}

/**
 * Looks at everything that would stop the run, reports all of it at once, and then makes the output folder ready. Throws `PORT_IN_USE`, `ENVIRONMENT_INVALID`, `FEATURE_UNAVAILABLE`,
 * `OUTPUT_UNUSABLE`, `RESUME_IMPOSSIBLE`, or several of them as `CONFIG_INVALID`; then nothing has been changed.
 */
export async function prepareRun({ config, workingDirectory, environment, problems: known = [] }: PrepareRunOptions): Promise<PreparedRun> {
  const folder = resolve(workingDirectory, config.output_dir)
  const checkpointRoot = resolve(workingDirectory, config.trainer.ckpt?.output_dir ?? config.output_dir)
  const wanted = config.trainer.ckpt?.resume_step ?? null
  const output: OutputFolderOptions = {
    // The name is prime-rl's: a user protects results by it on shared machines.
    clean: config.clean_output_dir && (environment.NEVER_CLEAN_OUTPUT_DIR ?? '') === '',
    isResume: wanted !== null,
    checkpointRoot,
    needed: [workingDirectory, ...modelFolders(config, workingDirectory)],
    traces,
  }
  const problems = [
    ...known,
    ...(await busyPorts(config.inference?.server.host ?? null, enginePorts(config))),
    ...(await busyRolloutPorts(config)),
    ...environmentProblems(config.orchestrator, workingDirectory, 'orchestrator.'),
  ]
  const attempt = <T>(look: () => T): T | undefined => {
    try {
      return look()
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      problems.push(error)
      return undefined
    }
  }
  if (config.deployment.num_train_gpus > 1)
    problems.push(
      new TrilithonError(
        'FEATURE_UNAVAILABLE',
        `deployment.num_train_gpus is ${config.deployment.num_train_gpus}, and one process trains`,
        {
          path: 'deployment.num_train_gpus',
          hint: 'Set it to 1, or wait for a release that splits a model over processes.',
        },
      ),
    )
  const unusable = unusableOutput(folder, output)
  if (unusable !== undefined) problems.push(unusable)
  let resume: ResumeStep | undefined
  if (wanted !== null) {
    const trainer = join(checkpointRoot, 'checkpoints')
    resume = attempt(() => resolveResumeStep(wanted, { trainer, orchestrator: join(folder, 'run_default') }))
    const beyond = resume && stepsBeyond(config, resume.step)
    if (beyond !== undefined) problems.push(beyond)
  }
  if (problems.length > 0) throw combineProblems(problems)
  prepareOutputFolder(folder, output)
  mkdirSync(join(folder, 'logs'), { recursive: true })
  for (const path of resume?.unpaired ?? []) setAside(path)
  // Versions of the run before: the trainer publishes that of its checkpoint anew, and none of them may be taken for it.
  rmSync(join(folder, 'run_default', 'broadcasts'), { recursive: true, force: true })
  return { folder, resumeStep: resume?.step ?? null }
}

/** A run that shall end before the step that it goes on from. */
function stepsBeyond({ trainer }: RlConfiguration, step: number): TrilithonError | undefined {
  const { max_steps: maxSteps, ckpt } = trainer
  if (maxSteps === null || step <= maxSteps || ckpt?.skip_progress === true) return undefined
  return new TrilithonError('RESUME_IMPOSSIBLE', `the run goes on behind step ${step}, and max_steps is ${maxSteps}`, {
    path: 'max_steps',
    hint: `Raise max_steps above ${step}, or resume from an earlier step with --ckpt.resume-step.`,
  })
}

/** Where the trainer listens for batches. One on made-up data does not. */
async function busyRolloutPorts({ trainer }: RlConfiguration): Promise<TrilithonError[]> {
  const { rollout_transport: transport, data } = trainer
  if (transport.type !== 'zmq' || data.fake !== null) return []
  // Sockets of ZeroMQ take the address of version 4, whatever the system prefers.
  const host = transport.host === 'localhost' ? null : transport.host
  return busyPorts(host, rolloutPorts(transport.port), { path: 'trainer.rollout_transport.port', flag: '--rollout-transport.port' })
}

/** The trainer refuses to come to a step twice; what the orchestrator has no part of is kept under another name. */
function setAside(path: string): void {
  let number = 0
  while (existsSync(`${path}.unpaired-${number}`)) number++
  renameSync(path, `${path}.unpaired-${number}`)
}

/** Folders that the run reads, where its models are folders. */
function modelFolders({ trainer, inference, orchestrator }: RlConfiguration, workingDirectory: string): string[] {
  const names = [
    trainer.model.name,
    trainer.tokenizer.name,
    inference?.model.name,
    orchestrator.student.model.name,
    orchestrator.tokenizer.name,
  ]
  return names.flatMap((name) => (name == null ? [] : [resolve(workingDirectory, name)]))
}
