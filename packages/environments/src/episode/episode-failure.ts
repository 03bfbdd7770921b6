import { TrilithonError } from '@trilithon/core'
import type { EpisodeErrorType } from '../pool/environment-pool.ts'

/** Trying again may help where the cause can pass by itself. */
const passing: ReadonlySet<string> = new Set<EpisodeErrorType>(['EngineAnswerInvalid', 'EngineAborted'])

/** Why an episode has no reward, as one of our own classes of failure. It ends in the result of the episode and nowhere else. */
export class EpisodeFailure extends Error {
  readonly type: EpisodeErrorType

  constructor(type: EpisodeErrorType, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = type
    this.type = type
  }
}

/** A limit on tokens ended the conversation: what was sampled so far is scored. */
export class ConversationEnd extends Error {
  readonly reason: 'prompt_too_long' | 'max_total_completion_tokens'

  constructor(reason: ConversationEnd['reason'], message: string) {
    super(message)
    this.name = 'ConversationEnd'
    this.reason = reason
  }
}

/** Whether the same episode may end otherwise when it is tried again. What an environment throws may come from the world around it. */
export function isRetryable(error: unknown): boolean {
  return !(error instanceof EpisodeFailure) || passing.has(error.type)
}

/** The error of a result: our own class, a code of ours, or the class of what an environment threw. */
export function describeFailure(error: unknown): { readonly type: string; readonly message: string } {
  if (error instanceof EpisodeFailure) return { type: error.type, message: withCause(error) }
  if (TrilithonError.is(error)) return { type: error.code, message: withCause(error) }
  if (error instanceof Error) return { type: error.name || 'Error', message: withCause(error) }
  return { type: 'Error', message: `the environment threw ${String(error)}` }
}

function withCause(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

/** Settles like `work`, or rejects with the reason of the signal, whichever comes first; what `work` does later is none of our business. */
export function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  if (signal.aborted) {
    work.catch(ignore)
    return Promise.reject(signal.reason)
  }
  return new Promise<Value>((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function ignore(): void {
  // The episode has ended already, with a reason of its own.
}

/** Waits, and rejects with the reason of the signal when it is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const wait = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return untilAborted(wait, signal).finally(() => clearTimeout(timer))
}
