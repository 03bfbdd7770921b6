import { EpisodeFailure } from '../episode/episode-failure.ts'
import type { CallDeath } from './call-worker.ts'

/** So often a request may have run in a worker that ended, and nobody knows by whom, before it runs alone. */
const mostUnknown = 2
/** So often it may have run beside whoever ended the worker, before it runs alone. */
const mostBeside = 3
/** So often a request is run again without it being its own fault; then something else is wrong. */
const mostReruns = 10

/**
 * What a request has been through. Its own fault costs a retry, and where it held its worker past its time it fails at once; that of another one costs nothing,
 * and its time begins anew.
 */
export class Trial {
  attempt: number
  /** Grows with each attempt that costs nothing. */
  maxRetries: number
  /** It is run alone from here on. */
  isSuspect = false
  #unknown = 0
  #reruns = 0

  constructor({ first_attempt, max_retries }: { readonly first_attempt: number; readonly max_retries: number }) {
    this.attempt = first_attempt
    this.maxRetries = max_retries
  }

  /** The worker ended: what the request failed by, or undefined where it runs again. `isHopeless`: every worker has died for a while. */
  lost(
    { reason, part, held }: CallDeath,
    { isAlone, isHopeless = false }: { readonly isAlone: boolean; readonly isHopeless?: boolean },
  ): EpisodeFailure | undefined {
    const isOwn = part === 'culprit' || part === 'alone'
    if (isOwn && held === 'own deadline') return new EpisodeFailure('DeadlineExceeded', `its worker was killed: ${reason}`)
    if (isOwn && held === 'silence') return new EpisodeFailure('WorkerDied', `its worker was killed: ${reason}`)
    if (isOwn && isHopeless) return new EpisodeFailure('WorkerDied', `workers die one after the other: ${reason}`)
    this.attempt++
    if (isOwn) {
      this.isSuspect = true
      // At the deadline of another one: its own time is not over.
      if (held !== null && !isAlone) this.maxRetries++
    } else {
      this.maxRetries++
      this.#reruns++
      if (part === 'unknown') this.#unknown++
      if (this.#unknown >= mostUnknown || this.#reruns >= mostBeside) this.isSuspect = true
      if (this.#reruns > mostReruns) return new EpisodeFailure('WorkerDied', `it was run ${mostReruns} times beside others: ${reason}`)
    }
    return this.attempt > this.maxRetries ? new EpisodeFailure('WorkerDied', `no retry is left: ${reason}`) : undefined
  }
}
