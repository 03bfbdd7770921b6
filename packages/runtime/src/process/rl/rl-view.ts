import type { Logger } from '@trilithon/core'
import { duration, evaluatedNames, LiveBlock, type RoleEvent, round, sparkline, stepLine, type ViewOutput } from '@trilithon/monitor'
import type { RoleEnd, RoleRestart } from './launcher.ts'
import type { RoleState, RunState } from './run-state.ts'

export interface RlViewOptions {
  readonly output: ViewOutput
  /** Lines as JSON of this logger instead of text. */
  readonly json: Logger | null
  readonly state: RunState
  readonly now?: () => number
}

const refreshMs = 500
/** Cells of the names at the left. */
const labelCells = 13

/** Shows a run: a block that changes in place on a terminal, lines in prime-rl's shape elsewhere. */
export class RlView {
  readonly #output: ViewOutput
  readonly #json: Logger | null
  readonly #state: RunState
  readonly #block: LiveBlock | null
  readonly #now: () => number
  readonly #timer: NodeJS.Timeout | undefined

  constructor({ output, json, state, now = () => performance.now() }: RlViewOptions) {
    this.#output = output
    this.#json = json
    this.#state = state
    this.#now = now
    this.#block = output.isTTY === true && json === null ? new LiveBlock({ output }) : null
    if (this.#block === null) return
    this.#timer = setInterval(() => this.#draw(), refreshMs)
    this.#timer.unref()
    this.#draw()
  }

  roleStarted(name: string, pid: number): void {
    if (this.#json !== null) this.#json.info('role started', { role: name, pid })
    else if (this.#block === null) this.print(`started as process ${pid}`, 'INFO', name)
  }

  /** After the state has taken it. */
  take(name: string, event: RoleEvent): void {
    if (this.#json !== null) this.#log(name, event, this.#json)
    else {
      // On a terminal the block has the steps; what happens once stays above it.
      if (event.kind === 'step' && (this.#block === null || evaluatedNames(event.values).length > 0))
        for (const text of stepLine(event.step, event.values).split('\n')) this.print(text, 'SUCCESS', name)
      if (event.kind === 'ready' && this.#block === null)
        this.print(['ready', event.url, event.detail].filter(Boolean).join(', '), 'INFO', name)
      if (event.kind === 'warning') this.print(event.message, 'WARNING', name)
    }
    this.#draw()
  }

  roleEnded(name: string, { status, signal }: RoleEnd): void {
    if (this.#json !== null) this.#json.info('role ended', { role: name, status, signal })
    else if (this.#block === null) this.print(endSentence(status, signal), 'INFO', name)
    this.#draw()
  }

  /** A role is started again: one line, wherever lines go. */
  roleRestarts(name: string, { attempt, limit, waitMs, cause, log }: RoleRestart): void {
    if (this.#json !== null) this.#json.warn('role is started again', { role: name, attempt, limit, waitMs, cause, log })
    else
      this.print(
        `the ${name} ${cause}; it is started again in ${waitMs / 1000} s (restart ${attempt} of ${limit}), its log: ${log}`,
        'WARNING',
      )
    this.#draw()
  }

  /** A line that stays, in the shape of the roles' own. */
  print(text: string, level: 'INFO' | 'SUCCESS' | 'WARNING', name = 'launcher'): void {
    if (this.#json !== null) {
      this.#json.info(text, { role: name })
      return
    }
    const line = `[${new Date().toTimeString().slice(0, 8)}] ${level} (${name}): ${text}`
    if (this.#block === null) this.#output.write(`${line}\n`)
    else this.#block.print(line)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#draw()
    this.#block?.close()
  }

  #draw(): void {
    this.#block?.update(runLines(this.#state, this.#now()))
  }

  #log(name: string, event: RoleEvent, log: Logger): void {
    if (event.kind === 'step') log.info('step', { role: name, step: event.step, ...event.values })
    else if (event.kind === 'ready') log.info('ready', { role: name, url: event.url, detail: event.detail })
    else if (event.kind === 'warning') log.warn(event.message, { role: name })
  }
}

/** The block of a run: what it has come to, and who waits for whom. */
export function runLines(state: RunState, nowMs: number): string[] {
  const { trained, batch, rewards, evaluation, maxSteps } = state
  const left = state.secondsLeft()
  const head = [
    `step ${trained === undefined ? '-' : trained.step + 1}${maxSteps === null ? '' : `/${maxSteps}`}`,
    `elapsed ${duration((nowMs - state.startedMs) / 1000)}`,
    ...(left === undefined ? [] : [`ETA ${duration(left)}`]),
  ]
  const reward = rewards.at(-1)
  const lines = [row('rl', head)]
  if (reward !== undefined)
    lines.push(
      row('reward', [
        `${reward.toFixed(4)} ${sparkline(rewards, 30)}`,
        ...(evaluation === undefined
          ? []
          : [`evaluation of ${evaluation.name} at step ${evaluation.step}: ${evaluation.reward.toFixed(4)}`]),
      ]),
    )
  const lag = batch?.values['lag/max'] ?? batch?.values['off_policy_level/max']
  const lags = [
    ...(lag === undefined ? [] : [`max ${round(lag)}`]),
    ...parts(batch?.values ?? {}, { mean: ['lag/mean', 'off_policy_level/mean'] }, 2),
    ...parts(trained?.values ?? {}, { 'mismatch KL': ['mismatch_kl/all/mean'], entropy: ['entropy/all/mean'] }, 4),
  ]
  if (lags.length > 0) lines.push(row('lag', lags))
  const [inference, trainer] = [state.inferenceThroughput(), state.trainerThroughput()]
  const rates = [
    ...(inference === undefined ? [] : [`inference ${round(inference)}`]),
    ...(trainer === undefined ? [] : [`trainer ${round(trainer)}`]),
  ]
  if (rates.length > 0) lines.push(row('tokens/s', rates))
  return [...lines, ...state.roles.map((role) => row(role.name, [roleText(role, state.idleShare(role, nowMs))]))]
}

function roleText({ state, values }: RoleState, idle: number | undefined): string {
  const known = Object.entries(values).flatMap(([key, value]) =>
    shownValues.has(key) && value > 0 ? [`${shownValues.get(key)} ${round(value)}`] : [],
  )
  const waits = idle === undefined ? '' : `waits ${round(100 * idle)} %`
  return `${waits.padEnd(11)} ${[state, ...known].join(', ')}`
}

/** Values of a state that are shown beside it, under these words. */
const shownValues: ReadonlyMap<string, string> = new Map([
  ['step', 'step'],
  ['running', 'running'],
  ['waiting', 'queued'],
  ['dispatcher/inflight_train', 'in flight'],
  ['dispatcher/inflight_eval', 'in evaluation'],
  ['batch/pending_rollouts', 'finished'],
  ['watcher/policy_version', 'version'],
  ['version', 'version'],
])

function parts(values: Readonly<Record<string, number>>, wanted: Readonly<Record<string, readonly string[]>>, digits: number): string[] {
  return Object.entries(wanted).flatMap(([title, keys]) => {
    const value = keys.map((key) => values[key]).find((one) => one !== undefined)
    return value === undefined ? [] : [`${title} ${value.toFixed(digits)}`]
  })
}

function row(label: string, cells: readonly string[]): string {
  return `${label.padEnd(labelCells)}${cells.join('  ')}`
}

/** An engine serves until it is asked to stop, which is no failure of a run that is done. */
function endSentence(status: number | null, signal: string | null): string {
  if (signal !== null) return `ended by ${signal}`
  return status === 130 ? 'ended when asked to' : `ended with status ${status}`
}
