import type { DescriptionMessage, FinalMessage, RunMessage } from '../protocol/messages.ts'
import type { TurnMessage } from '../protocol/turn-message.ts'

export interface CallOptions {
  readonly signal: AbortSignal
  readonly onTurn: (turn: TurnMessage) => void
  /** The request waits for a worker, or is run again: its time begins anew. */
  readonly onAgain?: () => void
}

/** Whoever runs episodes: worker processes here, or a server elsewhere. */
export interface Backend {
  readonly description: DescriptionMessage
  readonly counters: { workers: number; deaths: number; rerun: number }
  /** Rejects with `EpisodeFailure`: `Cancelled`, `DeadlineExceeded`, `WorkerDied`. Time counts while a worker has the request. */
  call(message: RunMessage, options: CallOptions): Promise<FinalMessage>
  dispose(): Promise<void>
}
