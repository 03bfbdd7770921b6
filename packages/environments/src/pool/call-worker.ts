import { EpisodeFailure } from '../episode/episode-failure.ts'
import type { FinalMessage, RunMessage } from '../protocol/messages.ts'
import type { TurnMessage } from '../protocol/turn-message.ts'
import type { WorkerGuest, WorkerProcess } from './worker-process.ts'

export interface CallWorkerOptions {
  readonly message: RunMessage
  readonly rolloutIds: readonly string[]
  readonly signal: AbortSignal
  /** Of `performance.now()`. */
  readonly deadline: number | null
  readonly onTurn: (turn: TurnMessage) => void
}

export type CallOutcome =
  | { readonly final: FinalMessage; readonly death?: undefined }
  | { readonly final?: undefined; readonly death: CallDeath }

/** The end of the worker, as a request there sees it. */
export interface CallDeath {
  readonly reason: string
  /** `culprit`: its own code held or ended the worker; `alone`: nobody else ran there; `beside`: it was another one; `unknown`: one of those that ran there. */
  readonly part: 'culprit' | 'alone' | 'beside' | 'unknown'
  /** Whether the worker was killed because it did not answer: at the deadline of this request, at that of another one, or after the longest silence. */
  readonly held: 'own deadline' | 'other deadline' | 'silence' | null
}

/** A worker ends an episode at its deadline by itself; this much later it is asked whether it is alive. */
const graceMs = 250
/** Time in which it has to say so. */
const probeMs = 750
/** Probes that it may answer without ending the episode. */
const mostProbes = 5

/**
 * Sends a request to a worker and waits for the end of its answer, or for the end of the worker. A worker that says nothing at a deadline is held by a busy
 * loop and is killed. Rejects with `Cancelled`.
 */
export function callWorker(
  worker: WorkerProcess,
  { message, rolloutIds, signal, deadline, onTurn }: CallWorkerOptions,
): Promise<CallOutcome> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let isOver = false
    let isLastProbe = false
    const finish = () => {
      isOver = true
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
      worker.leave(guest)
      worker.frames.forget(id)
    }
    const id = worker.frames.request(message, (frame) => {
      if ((frame as { event?: unknown }).event === 'turn') return onTurn(frame as TurnMessage)
      finish()
      resolve({ final: frame as FinalMessage })
    })
    const guest: WorkerGuest = {
      id,
      rolloutIds,
      onDeath({ reason, culprit, guests, held }) {
        finish()
        const isOver = deadline !== null && performance.now() >= deadline
        const others = culprit === undefined ? (guests === 1 ? 'alone' : 'unknown') : 'beside'
        resolve({
          death: {
            reason,
            part: culprit === id || isLastProbe ? 'culprit' : others,
            held: held === 'deadline' ? (isOver ? 'own deadline' : 'other deadline') : held,
          },
        })
      },
    }
    const cancel = () => {
      worker.frames.cancel(id)
      finish()
      reject(new EpisodeFailure('Cancelled', 'the episode was cancelled'))
    }
    const probe = (probes: number) => {
      const seconds = graceMs / 1000
      if (probes === mostProbes) {
        isLastProbe = true
        return worker.kill(`an episode did not end ${seconds + (mostProbes * probeMs) / 1000} s after its deadline`, 'deadline')
      }
      let isAlive = false
      worker.frames.ping(() => {
        isAlive = true
      })
      timer = setTimeout(() => {
        if (isOver) return
        if (isAlive) probe(probes + 1)
        else worker.killHeld('something in it ran without a pause past the deadline of an episode', 'deadline')
      }, probeMs)
    }
    worker.enter(guest)
    signal.addEventListener('abort', cancel, { once: true })
    if (deadline !== null) timer = setTimeout(() => probe(0), Math.min(2 ** 31 - 1, Math.max(0, deadline - performance.now()) + graceMs))
    if (signal.aborted) cancel()
  })
}
