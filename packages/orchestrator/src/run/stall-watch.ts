import { type Logger, TrilithonError } from '@trilithon/core'
import type { RoleEvent } from '@trilithon/monitor'
import type { Flying } from '../dispatch/dispatcher.ts'
import { rolloutIdOf } from '../dispatch/running-group.ts'
import type { EngineAdmin } from '../fleet/engine-admin.ts'
import type { LiveFleet } from '../fleet/live-fleet.ts'
import type { Clock } from './clock.ts'

export interface StallWatchOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly report: (event: RoleEvent) => void
  readonly fleet: LiveFleet
  readonly admin: Pick<EngineAdmin, 'load'>
  readonly flying: () => Flying
  /** Seconds of silence that end the run; null never does. */
  readonly timeoutS: number | null
}

/** Seconds of silence after which it is told. */
const warnAfterS = 60
const lookMs = 1000

/**
 * Looks whether episodes show signs of life: one is begun, ends, or comes to the end of a turn, or an engine computes for somebody. An environment that waits for ever
 * shows none, and without a `timeout` of its own nobody would end it. Told once per silence; throws `ENVIRONMENT_INVALID` after `timeoutS`. While no episode runs, a version
 * is being changed, or no engine is there, something else is waited for.
 */
export async function watchForStall(options: StallWatchOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, report, fleet, flying, timeoutS } = options
  let sinceMs = clock.nowMs()
  let isTold = false
  while (!signal.aborted) {
    await clock.sleep(lookMs, signal)
    if (signal.aborted) return
    const { episodes, lifeMs, oldest } = flying()
    const nowMs = clock.nowMs()
    const isExcused = oldest === undefined || !fleet.engines.some((engine) => fleet.stateOf(engine) === 'ready')
    const lastMs = isExcused ? nowMs : Math.max(sinceMs, lifeMs)
    if (lastMs !== sinceMs) isTold = false
    sinceMs = lastMs
    if (oldest === undefined || isExcused) continue
    const silentS = (nowMs - sinceMs) / 1000
    const isOver = timeoutS !== null && silentS >= timeoutS
    if (!isOver && (isTold || silentS < warnAfterS)) continue
    if (await isComputing(options)) {
      sinceMs = clock.nowMs()
      isTold = false
      continue
    }
    const { group, indices, startedMs } = oldest
    const { environment, taskIndex, id } = group.plan
    const one = `task ${taskIndex} of ${environment.name} (episode ${rolloutIdOf(id, indices[0] ?? 0)}), begun ${Math.round((nowMs - startedMs) / 1000)} s ago`
    const message = `nothing has come of ${episodes} episodes in flight for ${Math.round(silentS)} s: no turn and no end; the oldest is ${one}`
    const hint = `Set timeout of the environment ${environment.name}, so that an episode that hangs fails alone`
    if (isOver)
      throw new TrilithonError('ENVIRONMENT_INVALID', message, {
        path: `orchestrator.${environment.split}.env`,
        hint: `${hint}, or raise orchestrator.stall_timeout_seconds.${environment.logs === undefined ? '' : ` Look into ${environment.logs}.`}`,
      })
    isTold = true
    const fields = { episodes, silentS: Math.round(silentS), environment: environment.name, task: taskIndex, timeoutS }
    log.warn('no episode in flight shows a sign of life', fields)
    const end = timeoutS === null ? '' : `; the run ends after ${timeoutS} s`
    report({ kind: 'warning', role: 'orchestrator', message: `${message}. ${hint}${end}` })
  }
}

/** Whether an engine runs or queues anything: a turn may take longer than a silence. One that does not tell does not count. */
async function isComputing({ admin, fleet, log }: StallWatchOptions): Promise<boolean> {
  for (const engine of fleet.engines.filter((one) => fleet.stateOf(one) === 'ready')) {
    try {
      const { running, waiting } = await admin.load(engine)
      if (running + waiting > 0) return true
    } catch (error) {
      log.debug('the load of an engine cannot be read', { engine, error })
    }
  }
  return false
}
