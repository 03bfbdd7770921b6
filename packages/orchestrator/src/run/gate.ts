import type { PolicyVersion } from '@trilithon/core'

export interface GateOptions {
  /** `max_async_level`: batches that may be on their way before the weights of the first are back. */
  readonly level: number
  /** `max_off_policy_steps`. */
  readonly bound: number
}

/** The version that serves, and the batch that is next. */
export interface GateState {
  version: PolicyVersion
  step: number
}

/**
 * How far batches may run ahead of the weights. `lead` is the number of batches that were shipped and whose weights are not back. Nothing is started that no
 * batch could take: what is sampled now lags by the lead when it is shipped next, so the bound on lag limits the level, and level 0 makes the bound 0.
 */
export class Gate {
  readonly level: number
  readonly bound: number
  readonly state: GateState

  constructor({ level, bound }: GateOptions, state: GateState) {
    this.level = Math.min(level, bound)
    this.bound = this.level === 0 ? 0 : bound
    this.state = state
  }

  get lead(): number {
    return this.state.step - this.state.version
  }

  get isOpen(): boolean {
    return this.isOpenAt(this.state.step)
  }

  /** Whether episodes may be started when that is the next batch. */
  isOpenAt(step: number): boolean {
    return step - this.state.version <= this.level
  }

  /** Whether batch `step` may be shipped now. */
  get mayShip(): boolean {
    return this.state.version >= this.state.step - this.level
  }

  /** Whether a sample whose oldest token is of that version is too old for the batch that is next. */
  isStale(oldest: PolicyVersion): boolean {
    return this.state.step - oldest > this.bound
  }
}
