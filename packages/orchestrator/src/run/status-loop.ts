import type { RoleEvent } from '@trilithon/monitor'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { spread } from '../metrics/statistics.ts'
import type { UpdateTimes } from '../updates/weight-updater.ts'
import type { Clock } from './clock.ts'

/** What the orchestrator knows of itself. */
export interface RunState {
  readonly step: number
  readonly version: number
  readonly lead: number
  readonly pending: number
  /** Episodes of evaluations that are to be started. */
  readonly queuedEvals: number
  /** Engines that are used. */
  readonly enginesReady: number
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
  let lags: number[] = []
  while (!signal.aborted) {
    const nowMs = clock.nowMs()
    lags.push(Math.max(0, nowMs - expectedMs) / 1000)
    const now = read()
    const state = stateOf(now)
    if (state !== lastState || nowMs - lastMs >= intervalS * 1000) {
      report({
        kind: 'status',
        role: 'orchestrator',
        state,
        values: { ...statusValues(now), ...more(), ...lagValues(lags) },
      })
      lastState = state
      lastMs = nowMs
      lags = []
    }
    expectedMs = nowMs + lookMs
    await clock.sleep(lookMs, signal)
  }
}

/** Idle time begins with `waiting`. */
function stateOf({ isIdle, dispatcher, enginesReady }: RunState): string {
  if (enginesReady === 0) return 'waiting for an engine to come back'
  if (isIdle) return 'waiting for new weights'
  if (dispatcher.waitReason !== null && dispatcher.inflightTrain + dispatcher.inflightEval === 0) return 'waiting for an engine'
  return dispatcher.inflightEval > 0 && dispatcher.inflightTrain === 0 ? 'evaluating' : 'generating'
}

/** How late the event loop came back to what was due, in seconds, since it was last told. */
function lagValues(lags: readonly number[]): Record<string, number> {
  const sorted = [...lags].sort((one, other) => one - other)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return {
    ...spread('event_loop_lag', lags),
    ...{ 'event_loop_lag/median': at(0.5), 'event_loop_lag/p90': at(0.9), 'event_loop_lag/p99': at(0.99), 'event_loop_lag/n': lags.length },
  }
}

/** Under prime-rl's names, and `watcher/pause_seconds` beside them. They are told while a run goes on, and with every batch. */
export function statusValues({
  version,
  lead,
  pending,
  dispatcher,
  updates,
  times,
  weightsWaitS,
  step,
  queuedEvals,
  enginesReady,
}: RunState): Record<string, number> {
  return {
    'dispatcher/inflight_train': dispatcher.inflightTrain,
    'dispatcher/inflight_eval': dispatcher.inflightEval,
    'dispatcher/queued/eval': queuedEvals,
    // Evaluations go first while some of them wait to be started.
    'dispatcher/mode': Number(queuedEvals > 0),
    'dispatcher/groups_in_flight': dispatcher.groups,
    'dispatcher/off_policy_level_max': dispatcher.offPolicyMax,
    'dispatcher/off_policy_level_mean': dispatcher.offPolicyMean,
    'batch/pending_rollouts': pending,
    'progress/step': step,
    'watcher/policy_version': version,
    'watcher/lead': lead,
    'watcher/engines_ready': enginesReady,
    'watcher/update_count': updates,
    'watcher/last_update_weights_time': times.update,
    'watcher/last_wait_for_ckpt_time': weightsWaitS,
    'watcher/pause_seconds': times.pause,
    'watcher/engine_step_seconds': times.engineStep,
    'watcher/hold_seconds': times.hold,
    'watcher/prepare_seconds': times.prepare,
    'watcher/cancel_seconds': times.cancel,
  }
}
