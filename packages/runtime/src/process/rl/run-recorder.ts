import { existsSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'
import { MetricsFile, type RoleEvent, readMetrics } from '@trilithon/monitor'
import type { RunState } from './run-state.ts'

export interface RunRecorderOptions {
  /** `metrics.jsonl` of the run. */
  readonly path: string
  readonly state: RunState
  /** The first step that is to come. */
  readonly firstStep: number
}

/**
 * The metrics of a run in one file over the common axis `step`: the lines of all roles as they come, each with its `role`, and one of the launcher's own behind every
 * step of the trainer. Names that two roles have (`time/step`) are told apart by the role.
 */
export class RunRecorder {
  readonly #file: MetricsFile
  readonly #state: RunState
  /** Seconds of the run before it was resumed. */
  readonly #secondsBefore: number

  /** Throws `OUTPUT_UNUSABLE`. */
  constructor({ path, state, firstStep }: RunRecorderOptions) {
    this.#file = new MetricsFile(path)
    this.#state = state
    // Batches that were shipped are not made again, and their lines do not come again.
    this.#file.goOn(firstStep, { ahead: 'orchestrator' })
    const isGoingOn = firstStep > 0 && existsSync(path)
    this.#secondsBefore = isGoingOn ? lastTime(path) : 0
  }

  /** After the state has taken it. Throws `OUTPUT_UNUSABLE`. */
  take(name: string, event: RoleEvent, nowMs: number): void {
    if (event.kind !== 'step') return
    const finite = Object.entries(event.values).filter(([, value]) => Number.isFinite(value))
    this.#file.append(event.step, { role: name, ...Object.fromEntries(finite) })
    if (name !== 'trainer') return
    const seconds = this.#secondsBefore + (nowMs - this.#state.startedMs) / 1000
    this.#file.append(event.step, { role: 'launcher', 'time/wall': seconds, ...this.#state.stepValues(nowMs) })
  }
}

function lastTime(path: string): number {
  try {
    return readMetrics(path).series('time/wall').at(-1)?.[1] ?? 0
  } catch (error) {
    // No line is left.
    if (TrilithonError.is(error, 'DATA_INVALID')) return 0
    throw error
  }
}
