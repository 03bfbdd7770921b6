import { mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { Router, TrilithonError } from '@trilithon/core'
import { prepareOutputFolder, type ViewOutput } from '@trilithon/monitor'
import type { Composition } from '../compose/composition.ts'
import { createPlugins } from '../create-plugins.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import { evaluationConfiguration, evaluationFlags } from './evaluation/evaluation-flags.ts'
import { type EnvironmentReport, environmentReport, reportLine } from './evaluation/evaluation-report.ts'
import { type LifecycleContext, type LifecycleResult, runLifecycle } from './lifecycle.ts'
import { threadsVariable } from './rl/divide-cores.ts'
import { freePorts } from './rl/free-ports.ts'
import { createLocalLauncher } from './rl/local-launcher.ts'
import { type CommandLine, enginePorts, planRoles } from './rl/plan-roles.ts'
import { rlConfigurationOf } from './rl/rl-configuration-of.ts'

export interface EvaluationOptions {
  readonly environment: NodeJS.ProcessEnv
  readonly output: ViewOutput
  readonly colors: boolean
  readonly commandLine: CommandLine
  /** Folder of the model that is evaluated; null is that of the configuration. */
  readonly checkpoint: string | null
  /** Absolute folder that the evaluation writes into; what an earlier one has left there is deleted. */
  readonly folder: string
  /** Absolute path of the report. */
  readonly report: string
  /** Only the report, as JSON. */
  readonly json: boolean
  /** The same composition with more flags. */
  readonly recompose: (flags: readonly string[]) => Promise<Composition>
  /** Throws what a composition lacks for a real start. */
  readonly check: (composition: Composition) => void
}

export interface EvaluationReport {
  readonly model: string
  readonly environments: readonly EnvironmentReport[]
}

/** The engine ends within a step, episodes are cancelled. */
const disposeTimeoutMs = 60_000
/** Evaluations are of a model, not of a step of a run. */
const step = 0

/**
 * Evaluates a model as a run with this configuration would: starts engines that serve it, and every environment of `orchestrator.eval`. Resolves to how it ended; throws what
 * is wrong before anything starts.
 */
export async function startEvaluation(composition: Composition, options: EvaluationOptions): Promise<LifecycleResult> {
  const { environment, folder, output, checkpoint, commandLine, json } = options
  const written = rlConfigurationOf(composition)
  if (written.orchestrator.eval === null)
    throw new TrilithonError('CONFIG_VALUE_INVALID', 'The configuration says nothing of what is evaluated', {
      path: 'orchestrator.eval',
      hint: 'Add [[orchestrator.eval.env]] with the id of an environment.',
    })
  const { host = null, port = 8000 } = written.inference?.server ?? {}
  const engines = Math.max(1, enginePorts(written).length)
  // The run that it belongs to may be under way on the ports of the configuration.
  const first = await freePorts(host, port, engines)
  const final = await options.recompose(evaluationFlags({ model: checkpoint, folder, port: first, host }))
  options.check(final)
  const config = rlConfigurationOf(final)
  const ports = enginePorts(config)
  const { workingDirectory } = final.run
  const model = resolve(workingDirectory, config.orchestrator.student.model.name)
  prepareOutputFolder(folder, { clean: true, isResume: false, checkpointRoot: folder, needed: [workingDirectory, model], traces: [] })
  const { prepareOrchestrator, runOrchestratorEvaluation } = await import('@trilithon/orchestrator')
  const orchestrator = evaluationConfiguration(config.orchestrator, ports, host)
  const setup = await prepareOrchestrator({ config: orchestrator, workingDirectory, environment })
  writeResolved(final)
  mkdirSync(join(folder, 'logs'), { recursive: true })
  const log = await createLogger({
    level: logLevelOf(config.orchestrator.log.level),
    json: false,
    fd: openSync(join(folder, 'logs', 'evaluation.log'), 'a'),
    name: 'evaluation',
  })
  const threads = String(Math.max(1, Math.floor(availableParallelism() / ports.length)))
  const roles = planRoles({ config, folder, environment: { [threadsVariable]: threads, ...environment }, commandLine, cores: 1 })
    .filter(({ purpose }) => purpose === 'service')
    .map((role) => ({ ...role, purpose: 'work' as const }))
  const plugins = final.plugins.filter(({ definition: { fills } }) => fills.thread === 'main' && fills.runsIn.includes('orchestrator'))
  return runLifecycle(
    async ({ signal, onDispose }: LifecycleContext) => {
      const isDone = new AbortController()
      const failed = new AbortController()
      let failure: unknown
      const serving = createLocalLauncher()
        .launch({
          roles,
          workingDirectory,
          signal: AbortSignal.any([signal, isDone.signal]),
          readyTimeoutMs: 1000 * orchestrator.student.client.wait_for_ready_timeout,
          onEvent: () => undefined,
          onEnd: () => undefined,
        })
        .catch((error: unknown) => {
          failure = error
          failed.abort()
        })
      onDispose('the engines', async () => {
        isDone.abort()
        await serving
      })
      const container = await createPlugins(plugins, { run: final.run, log, signal })
      onDispose('the plugins', () => container.dispose())
      const results = await runOrchestratorEvaluation({
        ...{ setup, router: container.resolve(Router), log, step, file: null },
        output: { write: () => true },
        signal: AbortSignal.any([signal, failed.signal]),
      }).catch((error: unknown) => {
        // An engine that ended is the cause of what the episodes met.
        throw failure ?? error
      })
      if (failure !== undefined) throw failure
      if (signal.aborted) return
      const report: EvaluationReport = { model: config.orchestrator.student.model.name, environments: results.map(environmentReport) }
      writeReport(options.report, report)
      if (json) output.write(`${JSON.stringify(report)}\n`)
      else for (const one of report.environments) output.write(`${reportLine(one)}\n`)
    },
    { log, disposeTimeoutMs },
  )
}

function writeReport(path: string, report: EvaluationReport): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.writing`, `${JSON.stringify(report, null, 2)}\n`)
    renameSync(`${path}.writing`, path)
  } catch (cause) {
    throw new TrilithonError('OUTPUT_UNUSABLE', `${path} cannot be written: ${(cause as Error).message}`, {
      path: '--out',
      hint: 'Name another file with --out.',
      cause,
    })
  }
}
