import { join } from 'node:path'
import { type Logger, type Router, TrilithonError } from '@trilithon/core'
import type { EnvironmentPool } from '@trilithon/environments'
import { createReporter, type PlainError, type Reporter, type ViewOutput } from '@trilithon/monitor'
import { holdVersion, openRolloutSender, versionFolder, watchVersions } from '@trilithon/transport'
import { evalRecordsFile } from '../batch/rollout-record.ts'
import { Dispatcher, type RequestFacts } from '../dispatch/dispatcher.ts'
import type { EvalResult } from '../evals/eval-runs.ts'
import { runEvaluation } from '../evals/run-evaluation.ts'
import { createFilters } from '../filters/rollout-filter.ts'
import { createHttpEngineAdmin } from '../fleet/http-engine-admin.ts'
import { systemClock as clock } from '../run/clock.ts'
import { Orchestrator } from '../run/orchestrator.ts'
import type { RunSettings } from '../run/orchestrator-parts.ts'
import { watchForStall } from '../run/stall-watch.ts'
import { sourceSeed } from '../source/task-source.ts'
import { VersionHolds } from '../updates/version-holds.ts'
import { clientHeaders, connectEngines, serveFirstVersion } from './engine-connection.ts'
import { type HandOverOptions, handOver } from './hand-over.ts'
import { openEvalEnvironments, openTrainEnvironments } from './open-environments.ts'
import { type OrchestratorSetup, orchestratorFolders, stateFields } from './orchestrator-setup.ts'
import { createRunFiles } from './run-files.ts'

export interface OrchestratorStartOptions {
  readonly setup: OrchestratorSetup
  readonly router: Router
  readonly output: ViewOutput
  readonly log: Logger
  /** Ends the run in order: what is in flight is cancelled, what was shipped stays. */
  readonly signal: AbortSignal
}

const role = 'orchestrator'
/** The reduction orders that are built; a sample says under which its log-probabilities were computed. */
const profile = 'fp32'

/** Runs the orchestrator of a run. Resolves to how it ended when all of its environment workers are gone. */
export async function runOrchestrator(options: OrchestratorStartOptions): Promise<'done' | 'interrupted'> {
  const { setup, output, log, signal } = options
  const { config, outputFolder, resume } = setup
  const reporter = createReporter({
    ...{ role, output, log, json: config.log.json_logging, firstStep: resume?.progress.step ?? 0 },
    file: join(orchestratorFolders(outputFolder).run, 'metrics', `${role}.jsonl`),
  })
  const { broadcasts, rollouts } = orchestratorFolders(outputFolder)
  return reportedBy(reporter, signal, async () => {
    // First of all: a trainer may go on with the batches that were shipped before.
    const sender = await openRolloutSender({ transport: config.rollout_transport, rollouts, firstStep: resume?.step ?? 0, log })
    const holds = new VersionHolds((version) => holdVersion(broadcasts, version))
    const work = withConnection(options, async ({ admin, fleet, pools, facts }) => {
      const environments = { setup, log, onPool: (pool: EnvironmentPool) => void pools.push(pool) }
      const train = await openTrainEnvironments(environments)
      const evals = await openEvalEnvironments(environments)
      const timeoutS = config.ckpt?.wait_for_weights_timeout ?? config.student.client.wait_for_ready_timeout
      const version = await serveFirstVersion({
        ...{ fleet, admin, clock, log, signal, broadcasts, holds, timeoutS },
        resumeStep: resume === null || resume.step === 0 ? null : resume.step,
      })
      reporter.report({ kind: 'ready', role, detail: `version ${version}, batch ${resume?.progress.step ?? 0} is next` })
      const orchestrator = new Orchestrator({
        ...{ settings: settingsOf(setup), train, evals, router: options.router, fleet, admin, facts, clock, log, version },
        preFilters: createFilters(config.pre_batch_filters, setup.vocabSize),
        postFilters: createFilters(config.post_batch_filters, setup.vocabSize),
        sender,
        watchVersions: (onVersion, watch) => watchVersions(broadcasts, onVersion, watch),
        folderOf: (one) => versionFolder(broadcasts, one),
        holds,
        files: createRunFiles(outputFolder, config.ckpt),
        report: (event) => reporter.report(event),
        progress: resume?.progress ?? null,
        isResume: resume !== null,
      })
      await orchestrator.run(signal)
    })
    try {
      await work
      const onWait = () => reporter.report({ kind: 'status', role, state: 'waiting until the trainer has all batches', values: {} })
      const watch: HandOverOptions['watch'] = (onVersion, more) => watchVersions(broadcasts, onVersion, more)
      if (config.max_steps !== null) await handOver({ sender, watch, steps: config.max_steps, signal, onWait })
    } finally {
      holds.dispose()
      await sender.dispose()
    }
  })
}

export interface EvaluationStartOptions extends OrchestratorStartOptions {
  /** Step that results are told under. */
  readonly step: number
  /** `metrics.jsonl` that results go to; null keeps them in memory. */
  readonly file: string | null
}

/** Evaluates what the engines serve, once, in every environment of `eval`. */
export async function runOrchestratorEvaluation(options: EvaluationStartOptions): Promise<readonly EvalResult[]> {
  const { setup, output, log, signal, step, file, router } = options
  const { config, outputFolder } = setup
  const reporter = createReporter({ role, file, output, log, json: config.log.json_logging })
  let results: readonly EvalResult[] = []
  await reportedBy(reporter, signal, async () => {
    await withConnection(options, async ({ admin, fleet, pools, facts }) => {
      const environments = await openEvalEnvironments({ setup, log, onPool: (pool) => void pools.push(pool) })
      if (environments.length === 0)
        throw new TrilithonError('CONFIG_VALUE_INVALID', 'There is nothing to evaluate', {
          path: 'orchestrator.eval',
          hint: 'Add [[orchestrator.eval.env]].',
        })
      const [first] = fleet.workers()
      const policy = { version: first?.policyVersion ?? 0 }
      results = await runEvaluation({
        ...{ environments, clock, signal, step },
        createDispatcher: (nextEval) =>
          new Dispatcher({
            ...{ router, fleet, clock, log, facts, policy, nextEval, tasksPerMinute: config.tasks_per_minute },
            ...{ maxInflight: config.max_inflight_rollouts ?? 1, mayTrain: () => false, nextTrain: () => undefined },
          }),
        watch: (dispatcher, inner) =>
          watchForStall(
            {
              ...{ clock, log, report: (event) => reporter.report(event), fleet, admin, flying: () => dispatcher.flying },
              timeoutS: config.stall_timeout_seconds,
            },
            inner,
          ),
      })
    })
    const files = createRunFiles(outputFolder, null)
    for (const { environment, values, records } of results) {
      reporter.report({ kind: 'step', role, step, values })
      await files.saveRecords(step, evalRecordsFile(environment), records)
    }
  })
  return results
}

interface Connection {
  readonly admin: ReturnType<typeof createHttpEngineAdmin>
  readonly fleet: Awaited<ReturnType<typeof connectEngines>>
  readonly facts: RequestFacts
  /** Disposed of at the end. */
  readonly pools: EnvironmentPool[]
}

/** Connects to the engines; whatever `use` adds to `pools` is given back with the connection. */
async function withConnection(
  { setup, log, signal }: OrchestratorStartOptions,
  use: (connection: Connection) => Promise<void>,
): Promise<void> {
  const { config, environment } = setup
  const { client, model } = config.student
  const headers = clientHeaders(client, environment)
  const admin = createHttpEngineAdmin({ headers: headers.admin, timeouts: { connectMs: client.connect_timeout * 1000 } })
  const pools: EnvironmentPool[] = []
  try {
    const fleet = await connectEngines({ client, model: model.name, admin, clock, log, signal })
    const fields = Object.entries(client.extra_headers_from_state)
    const facts: RequestFacts = {
      ...{ model: model.name, apiKeyVar: client.api_key_var, datasetSeed: sourceSeed, routerUrl: client.router_url },
      headersOf: (episode) => ({
        ...headers.requests,
        ...Object.fromEntries(fields.map(([header, field]) => [header, stateFields[field as keyof typeof stateFields](episode)])),
      }),
      wantsRoutedExperts: false,
    }
    await use({ admin, fleet, facts, pools })
  } finally {
    await Promise.all(pools.map((pool) => pool.dispose()))
    await admin.dispose()
  }
}

/** Tells how it ended, and waits until that is told. */
async function reportedBy(reporter: Reporter, signal: AbortSignal, work: () => Promise<void>): Promise<'done' | 'interrupted'> {
  try {
    await work()
    if (signal.aborted) return 'interrupted'
    reporter.report({ kind: 'ended', role })
    return 'done'
  } catch (error) {
    if (signal.aborted && error === signal.reason) return 'interrupted'
    const known = TrilithonError.is(error)
      ? error
      : new TrilithonError('TASK_FAILED', `the orchestrator failed: ${error instanceof Error ? error.message : String(error)}`, {
          hint: 'Run with --verbose to see where.',
          cause: error,
        })
    reporter.report({ kind: 'failed', role, error: known.toJSON() as unknown as PlainError })
    throw known
  } finally {
    await reporter.close()
  }
}

function settingsOf({ config }: OrchestratorSetup): RunSettings {
  const { adaptive_concurrency: adaptive } = config
  return {
    adaptiveConcurrency: adaptive && {
      ...{ initialRollouts: adaptive.initial_rollouts, minRollouts: adaptive.min_rollouts },
      kvCacheUsageLimit: adaptive.kv_cache_usage_limit,
    },
    ...{ maxSteps: config.max_steps, batchSize: config.batch_size, tokenBatchSize: config.token_batch_size, seqLen: config.seq_len },
    maxInflight: config.max_inflight_rollouts ?? config.batch_size ?? 1,
    ...{ tasksPerMinute: config.tasks_per_minute, maxAsyncLevel: config.max_async_level, maxOffPolicySteps: config.max_off_policy_steps },
    checkpointInterval: config.ckpt?.interval ?? null,
    skipsFirstEval: config.eval?.skip_first_step ?? false,
    stallTimeoutS: config.stall_timeout_seconds,
    recoveryS: config.student.client.recovery_timeout_seconds,
    checkedModel: config.student.client.skip_model_check ? null : config.student.model.name,
    ...{ logInterval: config.log.interval, profile, pollsEngines: config.collect_inference_metrics },
  }
}
