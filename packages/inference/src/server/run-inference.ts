import { join } from 'node:path'
import { type KVStore, type Logger, TrilithonError } from '@trilithon/core'
import { MetricsFile, type Reporter, type ViewOutput } from '@trilithon/monitor'
import { createEngine } from '../engine/create-engine.ts'
import type { Engine } from '../engine/engine.ts'
import type { EngineOptions } from '../engine/engine-options.ts'
import { stateOf, UsageMeter, usageValues } from '../view/usage.ts'
import { UsageView } from '../view/usage-view.ts'
import { createInferenceServer, type InferenceServer } from './create-server.ts'
import { loadTextTools } from './load-text-tools.ts'
import type { InferenceSetup } from './prepare-inference.ts'

export interface InferenceRunOptions {
  readonly setup: InferenceSetup
  /** Name of this process among the roles: of its metrics and its events. */
  readonly role: string
  /** Where KV goes that no longer fits; its owner disposes of it, after the engine. */
  readonly store: KVStore | null
  readonly output: ViewOutput
  readonly log: Logger
  readonly reporter: Reporter
  /** Ends the serving. */
  readonly signal: AbortSignal
  /** Runs at the end, newest first. */
  readonly onDispose: (name: string, dispose: () => Promise<void>) => void
  /** Of the engine; for tests. */
  readonly start?: (options: EngineOptions, log: Logger, signal: AbortSignal) => Promise<Engine>
}

/** Requests may end by themselves for so long when the server is stopped; then they are ended with what they have. */
const drainMs = 300
const refreshMs = 250

/** Serves one engine until the signal. Rejects when the engine ends by itself, and with what starting it throws. */
export async function runInference(options: InferenceRunOptions): Promise<void> {
  const { setup, role, store, output, reporter, signal, onDispose, start = createEngine } = options
  const { config, modelFolder, workingDirectory, outputFolder, host, ports, apiKey } = setup
  const json = config.log.json_logging
  const view = new UsageView({ output, json: json ? options.log : null })
  const log = view.around(options.log)
  const metrics = new MetricsFile(join(outputFolder, 'metrics', `${role}.jsonl`))
  metrics.makeFolder()
  const text = loadTextTools({ modelFolder, chatTemplate: config.model.chat_template, workingDirectory })
  if (text === null) log.info('no tokeniser: token ids alone are served', { folder: modelFolder })
  const engine = await startNamed(start)(
    {
      modelFolder,
      profile: config.numerics_profile,
      maxModelLen: config.model.max_model_len,
      prefixCaching: config.enable_prefix_caching ?? true,
      routedExperts: config.enable_return_routed_experts,
      store,
    },
    log,
    signal,
  )
  onDispose('the engine', () => engine.dispose())
  if (signal.aborted) return
  const server = await createInferenceServer({
    ...{ engine, model: config.model.name, modelFolder, text, host, port: ports[0] ?? config.server.port, apiKey, log },
    returnsRoutedExperts: config.enable_return_routed_experts,
    seed: config.seed,
    livenessTimeoutMs: 1000 * config.server.liveness_timeout_seconds,
  })
  const watch = watchUsage({ engine, server, metrics, view, reporter, role, intervalMs: 1000 * config.log.interval })
  onDispose('the server', async () => {
    watch.stop()
    await server.close({ drainMs })
    watch.last()
    view.close()
  })
  view.print(
    `Serving ${config.model.name} (${engine.info.parameters} parameters, sequences of ${engine.info.maxModelLen} tokens) at ${server.url}`,
  )
  reporter.report({ kind: 'ready', role, url: server.url, detail: `${engine.info.blocks} blocks of ${engine.info.blockSize} tokens` })
  await untilEnd(engine, signal, watch.failed)
}

/** The engine's sizes under their names in the configuration. */
const keyOf: Readonly<Record<string, string>> = { 'engine.maxModelLen': 'model.max_model_len', 'engine.kvBytes': 'model.max_model_len' }

function startNamed(start: NonNullable<InferenceRunOptions['start']>): NonNullable<InferenceRunOptions['start']> {
  return async (...given) => {
    try {
      return await start(...given)
    } catch (error) {
      if (!TrilithonError.is(error, 'CONFIG_VALUE_INVALID')) throw error
      const { code, message, hint, details } = error
      throw new TrilithonError(code, message, { path: keyOf[error.path ?? ''] ?? error.path, hint, details, cause: error })
    }
  }
}

/** Resolves by the signal; rejects when the engine has ended, or its figures cannot be written. */
function untilEnd(engine: Engine, signal: AbortSignal, failed: Promise<never>): Promise<void> {
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  const ended = engine.ended.then(() => {
    throw new TrilithonError('ENGINE_FAILED', 'the engine has ended by itself', { hint: 'Run with --verbose.' })
  })
  return Promise.race([stopped, ended, failed])
}

interface WatchOptions {
  readonly engine: Engine
  readonly server: InferenceServer
  readonly metrics: MetricsFile
  readonly view: UsageView
  readonly reporter: Reporter
  readonly role: string
  /** Milliseconds between two lines. */
  readonly intervalMs: number
}

/** Looks at the engine at intervals: for the view and whoever started us often, for lines and the file of metrics now and then. */
function watchUsage({ engine, server, metrics, view, reporter, role, intervalMs }: WatchOptions) {
  const { stats } = server
  const fileStats = stats.createView()
  const now = () => performance.now()
  const often = new UsageMeter(engine.info, stats.read(), now())
  const seldom = new UsageMeter(engine.info, stats.read(), now())
  let isQuiet = true
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  const refresh = () => {
    const usage = often.take(stats.read(), now())
    view.refresh(usage)
    reporter.report({ kind: 'status', role, state: stateOf(usage), values: usageValues(usage) })
  }
  const line = () => {
    const counts = fileStats.read()
    const usage = seldom.take(counts, now())
    view.line(usage)
    // Of a time in which nothing happens, the first line alone.
    if (!usage.isActive && isQuiet) return
    isQuiet = !usage.isActive
    const { running, waiting, ...values } = usageValues(usage)
    metrics.append(usage.version, {
      ...{ time: Date.now() / 1000, running, waiting, ...values },
      ...{ 'cache/oldest_version_served': counts.oldestVersionServed ?? usage.version, requests: server.active.size },
    })
  }
  const guarded = (action: () => void) => () => {
    try {
      action()
    } catch (error) {
      fail(error)
    }
  }
  const timers = [setInterval(guarded(refresh), refreshMs), setInterval(guarded(line), intervalMs)]
  return {
    failed,
    stop() {
      for (const timer of timers) clearInterval(timer)
    },
    /** What came since the last line. */
    last: guarded(line),
  }
}
