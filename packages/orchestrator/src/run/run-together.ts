import { TrilithonError } from '@trilithon/core'

/**
 * Runs work with others beside it. The first failure of any ends all of them and is thrown, with its cause and the name of what failed; when the main work is done
 * the others are ended. Nothing is left running, and no failure is swallowed.
 */
export async function runTogether(
  main: (signal: AbortSignal) => Promise<void>,
  others: Readonly<Record<string, (signal: AbortSignal) => Promise<void>>>,
  signal: AbortSignal,
): Promise<void> {
  const controller = new AbortController()
  const end = () => controller.abort()
  if (signal.aborted) end()
  signal.addEventListener('abort', end, { once: true })
  let failure: { readonly reason: unknown } | undefined
  const watched = async (name: string, work: (inner: AbortSignal) => Promise<void>): Promise<void> => {
    try {
      await work(controller.signal)
      // Only the main work may end before it is told to.
      if (name !== 'main' && !controller.signal.aborted) throw new Error('it ended by itself')
    } catch (reason) {
      failure ??= { reason: TrilithonError.is(reason) ? reason : taskFailed(name, reason) }
      end()
    }
  }
  const running = Object.entries(others).map(([name, work]) => watched(name, work))
  await watched('main', main)
  end()
  await Promise.all(running)
  signal.removeEventListener('abort', end)
  if (failure !== undefined) throw failure.reason
}

function taskFailed(name: string, cause: unknown): TrilithonError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new TrilithonError('TASK_FAILED', `${name === 'main' ? 'the orchestrator' : `the ${name}`} failed: ${reason}`, {
    hint: 'Run with --verbose to see where.',
    cause,
  })
}
