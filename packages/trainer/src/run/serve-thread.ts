import { parentPort, workerData } from 'node:worker_threads'
import { invariant } from '@trilithon/core'
import { configureNative } from '@trilithon/native'
import { knownError } from './known-error.ts'

/** What the main thread gives to a training thread. */
export interface ThreadData {
  readonly setup: unknown
  readonly profile: 'fp32' | 'bf16'
  /** Its first element is not 0 when the run shall end. */
  readonly abortFlag: Int32Array
}

/** What the main thread sends. */
export type ThreadMessage<Message> = { readonly kind: 'stop' } | { readonly kind: 'message'; readonly message: Message }

/** The training thread's end of its channel. */
export interface ServedThread<Setup, Message> {
  readonly setup: Setup
  /** Plain data to the main thread. */
  send(event: unknown): void
  isStopped(): boolean
  /** The next message, in order; null when the run shall end. */
  receive(): Promise<Message | null>
}

/**
 * Runs the program of a training thread: model code runs there and nowhere else. What it throws is sent to the main thread, and the thread ends. Its
 * caller is the entry of a worker.
 */
export async function serveThread<Setup, Message = never>(run: (thread: ServedThread<Setup, Message>) => Promise<void>): Promise<void> {
  const port = parentPort
  invariant(port !== null, 'a training thread is started by runTrainingThread')
  const { setup, profile, abortFlag } = workerData as ThreadData
  const waiting: Message[] = []
  let wake: (() => void) | undefined
  const isStopped = () => Atomics.load(abortFlag, 0) !== 0
  port.on('message', (message: ThreadMessage<Message>) => {
    if (message.kind === 'message') waiting.push(message.message)
    wake?.()
  })
  const thread: ServedThread<Setup, Message> = {
    setup: setup as Setup,
    send: (event) => port.postMessage(event),
    isStopped,
    async receive() {
      while (waiting.length === 0 && !isStopped())
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      return isStopped() ? null : (waiting.shift() ?? null)
    },
  }
  try {
    configureNative({ profile, abortFlag })
    await run(thread)
  } catch (error) {
    port.postMessage({
      kind: 'failed',
      error: JSON.parse(JSON.stringify(knownError(error))),
      stack: error instanceof Error ? error.stack : undefined,
    })
  } finally {
    port.close()
  }
}
