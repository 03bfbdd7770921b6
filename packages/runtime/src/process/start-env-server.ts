import { join, resolve } from 'node:path'
import { invariant, type Logger } from '@trilithon/core'
import type { EnvironmentServer } from '@trilithon/environments'
import type { EnvironmentServerConfiguration } from '@trilithon/environments/configuration'
import { createReporter } from '@trilithon/monitor'
import type { Composition } from '../compose/composition.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'
import type { StartOptions } from './start-options.ts'

const role = 'environment'
/** Workers end within a second, held by a busy loop or not. */
const disposeTimeoutMs = 5000

/** Serves the environment of a composition of the root `env-server` until a signal. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startEnvServer(composition: Composition, { colors }: StartOptions): Promise<LifecycleResult> {
  const config = composition.resolved['env-server'] as EnvironmentServerConfiguration | undefined
  invariant(config !== undefined, 'a composition of env-server has a configuration of env-server')
  const { level, json_logging: json } = config.log
  const log = await createLogger({ level: logLevelOf(level), json, colors, name: role })
  const reporter = createReporter({ role, file: null, output: { write: () => true }, log, json })
  try {
    writeResolved(composition)
    const result = await runLifecycle(
      async ({ signal, onDispose }) => {
        const server = await startServer(config, composition.run.workingDirectory, log)
        onDispose('the environment server', () => server.dispose())
        const { name, scoring, tasks, eval_tasks } = server.description
        log.info('environment served', {
          name,
          address: server.address,
          workers: server.stats.workers,
          scoring,
          tasks,
          evalTasks: eval_tasks,
        })
        reporter.report({ kind: 'ready', role, url: server.address, detail: name })
        const timer = setInterval(() => {
          const { inFlight, finished, workerDeaths, rerun } = server.stats
          log.info('serving', { inFlight, finished, workerDeaths, rerun })
          reporter.report({ kind: 'status', role, state: 'serving', values: { inFlight, finished, workerDeaths, rerun } })
        }, config.log.interval * 1000)
        onDispose('the regular lines', async () => clearInterval(timer))
        await new Promise<void>((end) => signal.addEventListener('abort', () => end(), { once: true }))
      },
      { log, disposeTimeoutMs },
    )
    if (result.error === undefined) reporter.report({ kind: 'ended', role })
    return result
  } finally {
    await reporter.close()
  }
}

async function startServer(
  { env, log: logTable, output_dir }: EnvironmentServerConfiguration,
  workingDirectory: string,
  log: Logger,
): Promise<EnvironmentServer> {
  // Sockets and environments are loaded by a start alone.
  const [{ defaultServerAddress, startEnvironmentServer }, { environmentWorkerEntry }] = await Promise.all([
    import('@trilithon/environments'),
    import('@trilithon/orchestrator'),
  ])
  invariant(env.num_workers !== 'auto', 'the number of workers of a server is derived')
  return startEnvironmentServer({
    id: env.id,
    name: env.name,
    args: env.args,
    settings: env.extra_env_kwargs,
    address: env.address ?? defaultServerAddress,
    workers: env.num_workers,
    workerEntry: { file: environmentWorkerEntry },
    workingDirectory,
    logFolder: join(resolve(workingDirectory, output_dir), 'logs'),
    logLevel: logLevelOf(logTable.vf_level),
    logsData: logTable.log_data,
    limits: {
      timeoutS: env.timeout,
      maxRetries: env.max_retries,
      maxTotalCompletionTokens: env.max_total_completion_tokens,
      stateColumns: env.state_columns,
    },
    log,
  })
}
