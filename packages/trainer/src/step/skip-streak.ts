import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'

/** Steps in a row that may be skipped before the run ends: it would go on like that. */
const mostSkipped = 20

/** Counts steps that were skipped one behind the other. */
export class SkipStreak {
  readonly #outputFolder: string
  #length = 0

  constructor(outputFolder: string) {
    this.#outputFolder = outputFolder
  }

  /** Throws `TASK_FAILED` when there were too many. */
  note(isSkipped: boolean): void {
    this.#length = isSkipped ? this.#length + 1 : 0
    if (this.#length < mostSkipped) return
    throw new TrilithonError('TASK_FAILED', `${mostSkipped} steps in a row were skipped because their loss or gradient was not finite`, {
      path: join(this.#outputFolder, 'skipped'),
      hint: 'Look at the samples of the skipped steps; lower optim.lr if they are sound.',
    })
  }
}
