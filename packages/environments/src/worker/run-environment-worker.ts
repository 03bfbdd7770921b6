import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type LogLevel, TrilithonError } from '@trilithon/core'
import { Router } from 'zeromq'
import { type LoadEnvironmentOptions, loadEnvironment } from '../load/load-environment.ts'
import { shareOwnPackages } from '../load/share-own-packages.ts'
import { serveFrames } from '../protocol/serve-frames.ts'
import type { CreateTurnRenderer } from '../turn-renderer.ts'
import { endWithParent } from './end-with-parent.ts'
import { EnvironmentWorker } from './environment-worker.ts'
import { createLineLogger } from './line-logger.ts'
import { asRequest } from './running-request.ts'
import { startWatchThread } from './watch-thread.ts'

/** What the parent sends to a worker process first, over the channel between them. */
export interface WorkerSetup {
  /** Address that the worker listens on. */
  readonly endpoint: string
  /** Where the id of the request that holds or ends the process is written. */
  readonly culpritFile: string
  readonly environment: LoadEnvironmentOptions
  readonly parentPid: number
  readonly logLevel: LogLevel
  readonly logsData: boolean
}

/** What the worker says then: that it listens, or why it cannot. */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'failed'
      readonly error: { readonly code: string; readonly message: string; readonly path?: string; readonly hint?: string }
    }

/**
 * The whole of a worker process: takes its setup from the parent, loads the environment, and serves it until the parent ends it or ends itself. Called by
 * the entrance of the process, which brings the renderers.
 */
export async function runEnvironmentWorker(createTurnRenderer: CreateTurnRenderer): Promise<void> {
  // A terminal sends these to all of its processes; it is the parent that decides.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, ignore)
  // A full disk must not end episodes.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', ignore)
  const setup = await new Promise<WorkerSetup>((resolve) => process.once('message', (message) => resolve(message as WorkerSetup)))
  // The parent removes the folder of the sockets itself, unless it was killed.
  endWithParent(() => rmSync(dirname(setup.endpoint.replace('ipc://', '')), { recursive: true, force: true }))
  startWatchThread(setup)
  const log = createLineLogger(process.stdout, setup.logLevel)
  process.on('unhandledRejection', (error) => log.error('a promise of the environment was rejected and nobody listened', { error }))
  try {
    shareOwnPackages()
    const environment = await loadEnvironment(setup.environment)
    const router = new Router({ linger: 0, mandatory: true, sendHighWaterMark: 0, receiveHighWaterMark: 0 })
    await router.bind(setup.endpoint)
    const worker = new EnvironmentWorker({ environment, createTurnRenderer, log, logsData: setup.logsData })
    const { args, id } = setup.environment
    log.info('environment loaded', { id, args, pid: process.pid })
    tell({ kind: 'ready' })
    await serveFrames({ router, log, handle: (message, context) => asRequest(context.id, () => worker.handle(message, context)) })
  } catch (error) {
    log.error('the environment cannot be served', { error })
    const { code, message, path, hint } = TrilithonError.is(error)
      ? error
      : {
          code: 'ENVIRONMENT_INVALID',
          message: `the environment ${setup.environment.id}: ${(error as Error)?.message ?? String(error)}`,
          path: 'env.id',
          hint: undefined,
        }
    tell(
      { kind: 'failed', error: { code, message, ...(path === undefined ? {} : { path }), ...(hint === undefined ? {} : { hint }) } },
      () => process.exit(1),
    )
  }
}

function tell(message: WorkerMessage, then: () => void = ignore): void {
  process.send?.(message, then)
}

function ignore(): void {
  // Nothing to do: said where it is passed.
}
