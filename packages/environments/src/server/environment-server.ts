import { TrilithonError } from '@trilithon/core'
import { Router } from 'zeromq'
import { environmentName } from '../configuration/environment-name.ts'
import { describeFailure } from '../episode/episode-failure.ts'
import type { EnvironmentPoolOptions, PoolStats } from '../pool/environment-pool.ts'
import { WorkerSet } from '../pool/worker-set.ts'
import { type DescriptionMessage, type FinalMessage, inputsOf, type RequestMessage, type RunMessage } from '../protocol/messages.ts'
import { type RequestContext, serveFrames } from '../protocol/serve-frames.ts'

/** Where an orchestrator finds a server that says nothing else. */
export const defaultServerAddress = 'tcp://127.0.0.1:5000'

export interface EnvironmentServerOptions
  extends Omit<
    EnvironmentPoolOptions,
    'address' | 'renderer' | 'client' | 'timeoutS' | 'maxRetries' | 'maxTotalCompletionTokens' | 'stateColumns'
  > {
  /** `tcp://host:port`; a port of 0 takes any that is free. */
  readonly address: string
  /** The most that a request may ask for; null, or -1 for tokens, sets no limit. Columns are kept beside those of a request. */
  readonly limits: {
    readonly timeoutS: number | null
    readonly maxRetries: number
    readonly maxTotalCompletionTokens: number
    readonly stateColumns: readonly string[]
  }
}

export interface EnvironmentServer {
  /** With the port that was taken. */
  readonly address: string
  readonly description: DescriptionMessage
  readonly stats: PoolStats
  dispose(): Promise<void>
}

/**
 * Serves an environment to orchestrators elsewhere, by the same frames that workers speak. Throws `ENVIRONMENT_INVALID`, `TASK_FAILED` where a worker does not
 * start, `PORT_IN_USE` and `CONFIG_VALUE_INVALID` for the address; then nothing is left.
 */
export async function startEnvironmentServer(options: EnvironmentServerOptions): Promise<EnvironmentServer> {
  const { id, name, args = {}, settings = {}, workingDirectory = process.cwd(), log } = options
  // First the address: it costs nothing, and loading an environment may take minutes.
  const router = new Router({ linger: 0, mandatory: true, sendHighWaterMark: 0, receiveHighWaterMark: 0, tcpKeepalive: 1 })
  let workers: WorkerSet
  try {
    await bind(router, options.address)
    workers = await WorkerSet.start({
      environment: { id, name: environmentName({ id, name }), args, settings, workingDirectory },
      workers: options.workers,
      entry: options.workerEntry,
      logFolder: options.logFolder ?? null,
      logLevel: options.logLevel ?? 'info',
      logsData: options.logsData ?? false,
      renderer: null,
      log,
      onWorkerDeath: options.onWorkerDeath,
      startTimeoutS: options.startTimeoutS ?? 600,
      unresponsiveS: options.unresponsiveS ?? 30,
    })
  } catch (error) {
    router.close()
    throw error
  }
  let inFlight = 0
  let finished = 0
  const run = async (message: RunMessage, { signal, emit }: RequestContext): Promise<FinalMessage> => {
    const episodes = inputsOf(message).length
    inFlight += episodes
    try {
      return await workers.call(withinLimits(message, options.limits), { signal, onTurn: emit, onAgain: () => emit({ event: 'again' }) })
    } catch (error) {
      return { success: false, error: describeFailure(error) }
    } finally {
      inFlight -= episodes
      finished += episodes
    }
  }
  const serving = serveFrames({
    router,
    log,
    handle: async (message: RequestMessage, context) =>
      message.request_type === 'describe' ? { success: true, error: null, output: workers.description } : run(message, context),
  })
  return {
    address: router.lastEndpoint ?? options.address,
    description: workers.description,
    get stats() {
      const { workers: count, deaths: workerDeaths, rerun } = workers.counters
      return { workers: count, workerDeaths, rerun, inFlight, finished }
    },
    async dispose() {
      router.close()
      await serving
      await workers.dispose()
    },
  }
}

async function bind(router: Router, address: string): Promise<void> {
  try {
    await router.bind(address)
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new TrilithonError('PORT_IN_USE', `another program listens at ${address}`, {
        path: 'env.address',
        hint: 'Choose another address.',
        cause,
      })
    throw new TrilithonError('CONFIG_VALUE_INVALID', `nobody can listen at ${address}: ${message}`, {
      path: 'env.address',
      hint: 'Write tcp://host:port with an address of this machine.',
      cause,
    })
  }
}

function withinLimits(message: RunMessage, limits: EnvironmentServerOptions['limits']): RunMessage {
  const { timeoutS, maxRetries, maxTotalCompletionTokens: most, stateColumns } = limits
  const { deadline_ms: asked, max_total_completion_tokens: tokens } = message
  return {
    ...message,
    deadline_ms: timeoutS === null ? asked : Math.min(timeoutS * 1000, asked ?? Number.POSITIVE_INFINITY),
    max_retries: Math.min(message.max_retries, maxRetries),
    max_total_completion_tokens: most === -1 ? tokens : tokens === -1 ? most : Math.min(tokens, most),
    state_columns: [...new Set([...message.state_columns, ...stateColumns])],
  }
}
