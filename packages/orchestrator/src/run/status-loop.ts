import type { RoleEvent } from '@trilithon/monitor'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { UpdateTimes } from '../updates/weight-updater.ts'
import type { Clock } from './clock.ts'

/** What the orchestrator knows of itself. */
export interface RunState {
  readonly step: number
  readonly version: number
  readonly lead: number
  readonly pending: number
  readonly dispatcher: Dispatcher['stats']
  readonly updates: number
  readonly times: UpdateTimes
  readonly weightsWaitS: number
  readonly isIdle: boolean
}

export interface StatusLoopOptions {
  readonly clock: Clock
  readonly report: (event: RoleEvent) => void
  /** Seconds between two reports at most; a change of state is told within a tenth of a second. */
  readonly intervalS: number
  readonly read: () => RunState
  /** Further values of a report. */
  readonly more: () => Readonly<Record<string, number>>
  readonly signal: AbortSignal
}

const lookMs = 100

/** Tells what goes on: at every change of state, and regularly. */
export async function statusLoop({ clock, report, intervalS, read, more, signal }: StatusLoopOptions): Promise<void> {
  let lastState = ''
  let lastMs = Number.NEGATIVE_INFINITY
  let expectedMs = clock.nowMs()
  let lagMs = 0
  while (!signal.aborted) {
    const nowMs = clock.nowMs()
    lagMs = Math.max(lagMs, nowMs - expectedMs)
    const now = read()
    const state = stateOf(now)
    if (state !== lastState || nowMs - lastMs >= intervalS * 1000) {
      report({
        kind: 'status',
        role: 'orchestrator',
        state,
        values: { ...statusValues(now), ...more(), 'event_loop_lag/max': lagMs / 1000 },
      })
      lastState = state
      lastMs = nowMs
      lagMs = 0
    }
    expectedMs = nowMs + lookMs
    await clock.sleep(lookMs, signal)
  }
}

/** Idle time begins with `waiting`. */
function stateOf({ isIdle, dispatcher }: RunState): string {
  if (isIdle) return 'waiting for new weights'
  if (dispatcher.waitReason !== null && dispatcher.inflightTrain + dispatcher.inflightEval === 0) return 'waiting for an engine'
  return dispatcher.inflightEval > 0 && dispatcher.inflightTrain === 0 ? 'evaluating' : 'generating'
}

/** Under prime-rl's names, and `watcher/pause_seconds` beside them. */
function statusValues({ version, lead, pending, dispatcher, updates, times, weightsWaitS, step }: RunState): Record<string, number> {
  return {
    'dispatcher/inflight_train': dispatcher.inflightTrain,
    'dispatcher/inflight_eval': dispatcher.inflightEval,
    'dispatcher/groups_in_flight': dispatcher.groups,
    'dispatcher/off_policy_level_max': dispatcher.offPolicyMax,
    'dispatcher/off_policy_level_mean': dispatcher.offPolicyMean,
    'batch/pending_rollouts': pending,
    'progress/step': step,
    'watcher/policy_version': version,
    'watcher/lead': lead,
    'watcher/update_count': updates,
    'watcher/last_update_weights_time': times.update,
    'watcher/last_wait_for_ckpt_time': weightsWaitS,
    'watcher/pause_seconds': times.pause,
    'watcher/prepare_seconds': times.prepare,
    'watcher/cancel_seconds': times.cancel,
  }
}
