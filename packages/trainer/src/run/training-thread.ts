import { type TransferListItem, Worker } from 'node:worker_threads'
import { TrilithonError } from '@trilithon/core'
import { reviveError } from '@trilithon/monitor'
import type { ThreadData, ThreadMessage } from './serve-thread.ts'

/** The main thread's end of a training thread. */
export interface TrainingThread<Message> {
  /** A message for the thread; what is transferred is gone here. */
  post(message: Message, transfer?: readonly TransferListItem[]): void
  /** Ends the thread in order; the first failure is what the run fails with. */
  fail(error: unknown): void
}

/** What every training thread says last where it ends in order. */
export interface ThreadEnd {
  readonly kind: 'ended'
  readonly isInterrupted: boolean
}

export interface TrainingThreadOptions<Event extends { readonly kind: string }, Message> {
  readonly entry: URL
  readonly profile: ThreadData['profile']
  /** For the thread's program: plain data. */
  readonly setup: unknown
  /** Ends the run in order: the step that is under way is dropped, a checkpoint that is due is written. */
  readonly signal: AbortSignal
  /** What it throws ends the run like a signal, and is what the run fails with. */
  onEvent(event: Event | ThreadEnd, thread: TrainingThread<Message>): void
}

/** Runs model code in a thread of its own. Resolves when the thread has ended, to whether it was interrupted; rejects with what failed first. */
export async function runTrainingThread<Event extends { readonly kind: string }, Message = never>({
  entry,
  profile,
  setup,
  signal,
  onEvent,
}: TrainingThreadOptions<Event, Message>): Promise<'done' | 'interrupted'> {
  const abortFlag = new Int32Array(new SharedArrayBuffer(4))
  const data: ThreadData = { setup, profile, abortFlag }
  let failure: unknown
  let end: 'done' | 'interrupted' | undefined
  const worker = new Worker(entry, { workerData: data, stdout: false, stderr: false })
  const send = (message: ThreadMessage<Message>, transfer: readonly TransferListItem[] = []) => worker.postMessage(message, transfer)
  const stop = () => {
    Atomics.store(abortFlag, 0, 1)
    // Wakes a thread that waits for a message.
    send({ kind: 'stop' })
  }
  const fail = (error: unknown) => {
    failure ??= error
    stop()
  }
  const thread: TrainingThread<Message> = { post: (message, transfer) => send({ kind: 'message', message }, transfer), fail }
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await new Promise<void>((finish) => {
      worker.on('message', (event: Event | ThreadEnd | { readonly kind: 'failed'; readonly error: unknown; readonly stack?: string }) => {
        if (isFailure(event)) {
          failure ??= reviveError(event.error, event.stack)
          return
        }
        if (isEnd(event)) end = event.isInterrupted ? 'interrupted' : 'done'
        try {
          onEvent(event, thread)
        } catch (error) {
          fail(error)
        }
      })
      worker.on('error', (error) => {
        failure ??= error
      })
      worker.on('exit', () => finish())
    })
  } finally {
    signal.removeEventListener('abort', stop)
  }
  if (failure !== undefined) throw failure
  if (end === undefined)
    throw new TrilithonError('TASK_FAILED', 'the training thread ended without a word', { hint: 'Run with --verbose.' })
  return end
}

function isFailure(event: {
  readonly kind: string
}): event is { readonly kind: 'failed'; readonly error: unknown; readonly stack?: string } {
  return event.kind === 'failed'
}

function isEnd(event: { readonly kind: string }): event is ThreadEnd {
  return event.kind === 'ended'
}
