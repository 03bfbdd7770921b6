import type { Logger } from '@trilithon/core'
import { LiveBlock } from './live-block.ts'
import { MetricsFile } from './metrics-file.ts'
import type { RoleEvent } from './role-event.ts'
import { stepLine } from './step-line.ts'
import type { ViewOutput } from './view-output.ts'

/** The parent's end of the channel: `process` has it when it was started by a launcher. */
export interface ParentChannel {
  readonly connected: boolean
  send?(message: unknown, callback: (error: Error | null) => void): unknown
}

export interface ReporterOptions {
  readonly role: string
  /** Path of the lines of JSON, one per step; null where nobody wants them. */
  readonly file: string | null
  readonly output: ViewOutput
  readonly log: Logger
  /** Lines as JSON of `log` instead of text. */
  readonly json: boolean
  /** The first step that is to come. Lines of it and of later ones, from before a resume, are dropped; an evaluation of it stays until it is made anew. */
  readonly firstStep?: number
  /** By default `process`, where a launcher that listens has started it: see `launchedVariable`. */
  readonly parent?: ParentChannel | null
  /** Milliseconds of a clock that does not go back. */
  readonly now?: () => number
}

export interface Reporter {
  /** Throws `OUTPUT_UNUSABLE` when a line cannot be written. */
  report(event: RoleEvent): void
  /** Resolves when all was sent. */
  close(): Promise<void>
}

/** Variable of the environment that a launcher sets to `1` for the roles it listens to: other parents (test runners) have channels for other messages. */
export const launchedVariable = 'TRILITHON_LAUNCHED'

/** The channel to the launcher that started this process; null where nobody listens. */
export function launchingParent(): ParentChannel | null {
  return process.env[launchedVariable] === '1' && process.send !== undefined ? (process as ParentChannel) : null
}

/** Least time between two states that are sent. */
const statusIntervalMs = 100
/** A state that stays is told again, as a sign of life of the main thread. */
const heartbeatMs = 2000

/**
 * Tells what a role does: into its file, to the process that started it, and to a person: plain lines in prime-rl's shape, some lines in place where the role was
 * started by itself on a terminal, or JSON. Throws `OUTPUT_UNUSABLE`.
 */
export function createReporter(options: ReporterOptions): Reporter {
  const { role, file, output, log, json, firstStep = 0, now = () => performance.now() } = options
  const parent = options.parent === undefined ? launchingParent() : options.parent
  const metrics = file === null ? null : new MetricsFile(file)
  metrics?.makeFolder()
  metrics?.goOn(firstStep)
  const isChild = () => parent?.connected === true && parent.send !== undefined
  const block = output.isTTY === true && !json && !isChild() ? new LiveBlock({ output }) : null
  const sending = new Set<Promise<void>>()
  const states = new StateClock(now)
  let lastStatusMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let lastStep = ''

  const send = (event: RoleEvent) => {
    if (!isChild()) return
    // A parent that has gone is noticed by the end of the channel; what it would have been told no longer matters.
    const sent = new Promise<void>((resolve) => parent?.send?.(event, () => resolve())).finally(() => sending.delete(sent))
    sending.add(sent)
  }
  const sendStatus = () => {
    clearTimeout(timer)
    timer = undefined
    lastStatusMs = now()
    const { state, values } = states
    send({ kind: 'status', role, state, values, spent: states.spent() })
  }
  const heartbeat = isChild() ? setInterval(sendStatus, heartbeatMs) : undefined
  heartbeat?.unref()
  const line = (text: string) => {
    const lines = text.split('\n').map((one) => `[${clockTime()}] SUCCESS (${role}): ${one}`)
    for (const one of lines) {
      if (block === null) output.write(`${one}\n`)
      else block.print(one)
    }
  }

  const report = (event: RoleEvent) => {
    switch (event.kind) {
      case 'status':
        states.enter(event.state, event.values)
        block?.update([...(lastStep === '' ? [] : [lastStep]), `${role}: ${event.state}`])
        if (timer !== undefined) return
        if (now() - lastStatusMs >= statusIntervalMs) sendStatus()
        else {
          timer = setTimeout(sendStatus, statusIntervalMs)
          timer.unref()
        }
        return
      case 'step':
        metrics?.append(event.step, finite(event.values))
        send(event)
        lastStep = stepLine(event.step, event.values)
        if (json) log.info('step', { step: event.step, ...event.values })
        else line(lastStep)
        return
      case 'ready':
        send(event)
        log.info('ready', { ...(event.url === undefined ? {} : { url: event.url }), ...(event.detail ? { detail: event.detail } : {}) })
        return
      case 'ended':
        if (timer !== undefined) sendStatus()
        send(event)
        log.info('ended')
        return
      case 'warning':
      case 'failed':
        // Whoever ends the process says why; a warning is in the log of the role already.
        send(event)
    }
  }
  return {
    report,
    async close() {
      clearInterval(heartbeat)
      if (timer !== undefined) sendStatus()
      block?.close()
      await Promise.all(sending)
    },
  }
}

/** Seconds that a role has spent in each of its states. */
class StateClock {
  state = 'starting'
  values: Readonly<Record<string, number>> = {}
  readonly #now: () => number
  readonly #spent = new Map<string, number>()
  #sinceMs: number

  constructor(now: () => number) {
    this.#now = now
    this.#sinceMs = now()
  }

  enter(state: string, values: Readonly<Record<string, number>>): void {
    this.#count()
    this.state = state
    this.values = values
  }

  spent(): Record<string, number> {
    this.#count()
    return Object.fromEntries([...this.#spent].map(([state, ms]) => [state, ms / 1000]))
  }

  #count(): void {
    const nowMs = this.#now()
    this.#spent.set(this.state, (this.#spent.get(this.state) ?? 0) + nowMs - this.#sinceMs)
    this.#sinceMs = nowMs
  }
}

/** JSON has no NaN: a value that is not finite is left out of the file. */
function finite(values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => Number.isFinite(value)))
}

function clockTime(): string {
  return new Date().toTimeString().slice(0, 8)
}
