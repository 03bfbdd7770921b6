import { type ExitStatus, type Logger, TrilithonError } from '@trilithon/core'
import { launchingParent } from '@trilithon/monitor'

/** What `process` offers here, so that a test can play it. */
export interface ProcessEvents {
  on(event: string, listener: (...values: unknown[]) => void): unknown
  off(event: string, listener: (...values: unknown[]) => void): unknown
  exit(status: number): void
}

export interface LifecycleContext {
  /** Aborted by a signal, by a failed background task, or when the body has ended. */
  readonly signal: AbortSignal
  /** Starts work beside the body. An exception in it ends the process with `TASK_FAILED` and that cause. */
  background(name: string, task: (signal: AbortSignal) => Promise<void>): void
  /** Runs at the end, newest first, whatever happened. What a body makes when the end has begun is disposed of at once. */
  onDispose(name: string, dispose: () => Promise<void>): void
}

export interface LifecycleOptions {
  readonly log: Logger
  readonly events?: ProcessEvents
  /** Milliseconds that disposal may take before the process ends without the rest. */
  readonly disposeTimeoutMs?: number
  /** A launcher listens to this process: without it there is nobody to work for. By default so where one has started it. */
  readonly isLaunched?: boolean
}

/** A role whose launcher has gone may not outlive it for longer. */
const orphanTimeoutMs = 10_000

/** `130` for a run that a signal ended. `error` is what ended it otherwise. */
export interface LifecycleResult {
  readonly status: 0 | ExitStatus | 130
  readonly error?: TrilithonError
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a role from start to end: the first signal, or the end of the launcher that started it, asks for an orderly end, a second one ends at once; a failure
 * anywhere stops everything with its cause; whatever was registered is disposed of, newest first.
 */
export async function runLifecycle(
  body: (context: LifecycleContext) => Promise<void>,
  options: LifecycleOptions,
): Promise<LifecycleResult> {
  const { log, events = process as unknown as ProcessEvents, disposeTimeoutMs = 10_000, isLaunched = launchingParent() !== null } = options
  const controller = new AbortController()
  const disposers: { readonly name: string; readonly dispose: () => Promise<void> }[] = []
  const tasks: Promise<void>[] = []
  let interrupted = false
  let isEnding = false
  let failure: TrilithonError | undefined

  const fail = (error: TrilithonError) => {
    // What fails after the first failure or after a signal is a consequence of it.
    if (failure === undefined && !controller.signal.aborted) failure = error
    else log.debug('failure after the end began', { error })
    controller.abort(error)
  }
  const onSignal = (name: unknown) => {
    if (interrupted) events.exit(130)
    interrupted = true
    log.info('stopping', { signal: name })
    controller.abort(new TrilithonError('TASK_FAILED', `stopped by ${String(name)}`))
  }
  let orphanTimer: NodeJS.Timeout | undefined
  const onOrphaned = () => {
    orphanTimer = setTimeout(() => events.exit(1), orphanTimeoutMs)
    orphanTimer.unref()
    if (!interrupted) onSignal('the end of the launcher')
  }
  const onStray = (reason: unknown) => fail(taskFailure('the process', reason))
  for (const signal of signals) events.on(signal, onSignal)
  if (isLaunched) events.on('disconnect', onOrphaned)
  events.on('uncaughtException', onStray)
  events.on('unhandledRejection', onStray)

  const context: LifecycleContext = {
    signal: controller.signal,
    background(name, task) {
      const running = (async () => task(controller.signal))().catch((reason: unknown) => fail(taskFailure(name, reason)))
      tasks.push(running)
    },
    onDispose(name, dispose) {
      if (!isEnding) disposers.push({ name, dispose })
      // By a signal the body is not waited for, and may be in the middle of a start: what it still makes would keep the process alive.
      else void (async () => dispose())().catch((error: unknown) => log.error('disposal failed', { name, error }))
    },
  }
  const stopped = new Promise<void>((resolve) => controller.signal.addEventListener('abort', () => resolve(), { once: true }))
  try {
    // A body that does not listen to the signal must not keep the process alive after a failure.
    await Promise.race([(async () => body(context))(), stopped])
  } catch (reason) {
    fail(TrilithonError.is(reason) ? reason : taskFailure('the run', reason))
  }
  controller.abort()
  isEnding = true
  const disposal = disposeNewestFirst(disposers, tasks, disposeTimeoutMs, log)
  const disposalFailure = await disposal
  for (const signal of signals) events.off(signal, onSignal)
  if (isLaunched) events.off('disconnect', onOrphaned)
  clearTimeout(orphanTimer)
  events.off('uncaughtException', onStray)
  events.off('unhandledRejection', onStray)

  const error = failure ?? disposalFailure
  if (error !== undefined) return { status: error.exitStatus, error }
  return { status: interrupted ? 130 : 0 }
}

function taskFailure(name: string, cause: unknown): TrilithonError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new TrilithonError('TASK_FAILED', `${name} failed: ${reason}`, { hint: 'Run with --verbose to see where.', cause })
}

async function disposeNewestFirst(
  disposers: readonly { readonly name: string; readonly dispose: () => Promise<void> }[],
  tasks: readonly Promise<void>[],
  timeoutMs: number,
  log: Logger,
): Promise<TrilithonError | undefined> {
  let first: TrilithonError | undefined
  const work = (async () => {
    for (const { name, dispose } of [...disposers].reverse()) {
      try {
        await dispose()
      } catch (cause) {
        first ??= TrilithonError.is(cause) ? cause : taskFailure(`disposing of ${name}`, cause)
        log.error('disposal failed', { name, error: cause })
      }
    }
    await Promise.all(tasks)
    return true
  })()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs)
  })
  const inTime = await Promise.race([work, late])
  clearTimeout(timer)
  if (!inTime) {
    first ??= new TrilithonError('TASK_FAILED', `disposal took longer than ${timeoutMs} ms and was given up`, {
      hint: 'Run with --verbose to see what was open.',
    })
  }
  return first
}
