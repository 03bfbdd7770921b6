import { join } from 'node:path'
import type { Logger } from '@trilithon/core'
import { createEnvironmentPool, type EnvironmentPool, type EpisodeSampling } from '@trilithon/environments'
import { environmentFileName, environmentName } from '@trilithon/environments/configuration'
import { createAdvantage } from '../advantage/create-advantage.ts'
import type { OrchestratorConfiguration } from '../configuration/orchestrator-schema.ts'
import type { EpisodeEnvironment } from '../dispatch/group-plan.ts'
import { environmentWorkerEntry } from '../environment-worker/entry.ts'
import type { EvalEnvironment } from '../evals/eval-runs.ts'
import type { OrchestratorParts } from '../run/orchestrator-parts.ts'
import { type OrchestratorSetup, orchestratorFolders } from './orchestrator-setup.ts'

type EnvironmentTable = OrchestratorConfiguration['train']['env'][number] | NonNullable<OrchestratorConfiguration['eval']>['env'][number]

export interface OpenEnvironmentsOptions {
  readonly setup: OrchestratorSetup
  readonly log: Logger
  /** Told of every pool as soon as it is there, so that it is disposed of whatever happens. */
  readonly onPool: (pool: EnvironmentPool) => void
}

/** Starts the workers of everything that is trained on. */
export async function openTrainEnvironments(options: OpenEnvironmentsOptions): Promise<OrchestratorParts['train']> {
  const { config, workingDirectory } = options.setup
  const opened: OrchestratorParts['train'][number][] = []
  for (const table of config.train.env) {
    const { temperature, max_completion_tokens, extra_body } = table.sampling
    const environment = await open(table, 'train', { temperature, top_p: 1, max_completion_tokens, extra_body }, options)
    const advantage = await createAdvantage(table.advantage, workingDirectory)
    opened.push({ environment, advantage, groupSize: table.group_size, ratio: table.ratio })
  }
  return opened
}

/** Starts the workers of everything that is evaluated. */
export async function openEvalEnvironments(options: OpenEnvironmentsOptions): Promise<EvalEnvironment[]> {
  const opened: EvalEnvironment[] = []
  for (const table of options.setup.config.eval?.env ?? []) {
    const { temperature, top_p, top_k, min_p, max_completion_tokens, extra_body } = table.sampling
    const environment = await open(table, 'eval', { temperature, top_p, top_k, min_p, max_completion_tokens, extra_body }, options)
    opened.push({ environment, groupSize: table.group_size, examples: table.num_examples, interval: table.interval })
  }
  return opened
}

/** Beyond what its retries may take. */
const leaseMarginMs = 60_000

async function open(
  table: EnvironmentTable,
  split: 'train' | 'eval',
  sampling: EpisodeSampling,
  { setup, log, onPool }: OpenEnvironmentsOptions,
): Promise<EpisodeEnvironment> {
  const { config, workingDirectory, outputFolder, tokenizerFolder, chatTemplate } = setup
  const { student, renderer } = config
  const name = environmentName(table)
  const { vf_level, log_data } = config.log
  const logFolder = join(orchestratorFolders(outputFolder).run, 'logs', 'envs', split, environmentFileName(name))
  const pool = await createEnvironmentPool({
    ...{ id: table.id, name, args: table.args, settings: table.extra_env_kwargs, address: table.address, workingDirectory, log },
    workers: typeof table.num_workers === 'number' ? table.num_workers : 1,
    workerEntry: { file: environmentWorkerEntry },
    renderer: { config: renderer, tokenizer: tokenizerFolder, model: student.model.name, chatTemplate },
    ...{ timeoutS: table.timeout, maxRetries: table.max_retries, maxTotalCompletionTokens: table.max_total_completion_tokens },
    stateColumns: table.state_columns,
    client: { timeoutS: student.client.timeout, connectTimeoutS: student.client.connect_timeout },
    ...{ logFolder, logLevel: logLevelOf(vf_level), logsData: log_data },
  })
  onPool(pool)
  log.info('environment ready', { environment: name, split, tasks: split === 'train' ? pool.tasks : pool.evalTasks, scoring: pool.scoring })
  const leaseMs = table.timeout === null ? null : table.timeout * 1000 * (table.max_retries + 1) + leaseMarginMs
  const logs = table.address === null ? join(logFolder, 'env_worker_*.log') : `the logs of the server at ${table.address}`
  return { name, pool, split, sampling, maxSeqLen: config.seq_len, leaseMs, logs }
}

/** Our four levels of prime-rl's. */
function logLevelOf(level: string): 'debug' | 'info' | 'warn' | 'error' {
  switch (level.toLowerCase()) {
    case 'trace':
    case 'debug':
      return 'debug'
    case 'warning':
    case 'warn':
      return 'warn'
    case 'error':
    case 'critical':
      return 'error'
    default:
      return 'info'
  }
}
