import type { Turn } from '@trilithon/core'
import { decodeTurn, type TurnMessage } from '../protocol/turn-message.ts'

/** Turns of one episode as they arrive. An attempt that begins anew forgets those of the attempt before it, so one branch alone is left. */
export class TurnCollector {
  turns: Turn[] = []
  attempt = -1

  /** The turn, or undefined where it comes late and belongs to an attempt that was given up. */
  take(message: TurnMessage): Turn | undefined {
    if (message.attempt < this.attempt) return undefined
    if (message.attempt > this.attempt) {
      this.turns = []
      this.attempt = message.attempt
    }
    const turn = decodeTurn(message, this.turns.at(-1))
    this.turns.push(turn)
    return turn
  }

  /** Turns of that attempt, or undefined where some are missing. */
  complete(attempt: number, count: number): Turn[] | undefined {
    const turns = attempt === this.attempt ? this.turns : []
    return turns.length === count ? turns : undefined
  }
}
