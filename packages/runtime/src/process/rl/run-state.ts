import { evaluatedNames, evaluationReward, type RoleEvent } from '@trilithon/monitor'

type Values = Readonly<Record<string, number>>

/** Seconds that idle time and rates are taken over. */
const windowMs = 30_000
/** Weight of the newest step in the time per step that the end is estimated by. */
const newest = 0.1

interface Sample {
  readonly atMs: number
  readonly idle: number
  readonly total: number
  /** Generated so far; undefined for a role that tells no rate. */
  readonly tokens: number | undefined
}

export interface RoleState {
  readonly name: string
  state: string
  values: Values
  /** Samples of the last while, oldest first. */
  samples: Sample[]
  /** At the trainer's last step: what was told last, and that with the time since then. */
  atStep: Sample | undefined
  timeAtStep: Sample | undefined
}

/** What a run is doing, from the events of its roles. */
export class RunState {
  readonly roles: readonly RoleState[]
  readonly maxSteps: number | null
  readonly startedMs: number
  /** Mean rewards of the batches so far. */
  readonly rewards: number[] = []
  /** Of the last batch that was shipped, and of the last that was trained. */
  batch: { readonly step: number; readonly values: Values } | undefined
  trained: { readonly step: number; readonly values: Values } | undefined
  evaluation: { readonly step: number; readonly name: string; readonly reward: number } | undefined
  #secondsPerStep = 0
  #lastStepMs: number | undefined

  constructor(names: readonly string[], maxSteps: number | null, nowMs: number) {
    this.roles = names.map((name) => ({ name, state: 'starting', values: {}, samples: [], atStep: undefined, timeAtStep: undefined }))
    this.maxSteps = maxSteps
    this.startedMs = nowMs
  }

  take(name: string, event: RoleEvent, nowMs: number): void {
    const role = this.roles.find((one) => one.name === name)
    if (role === undefined) return
    switch (event.kind) {
      case 'status': {
        role.state = event.state
        role.values = event.values
        const sample = sampleOf(event.spent ?? {}, generated(role.samples.at(-1), event.values.throughput, nowMs), nowMs)
        role.samples = [...role.samples.filter(({ atMs }) => atMs > nowMs - windowMs), sample]
        role.atStep ??= sample
        role.timeAtStep ??= sample
        return
      }
      case 'ready':
        if (role.samples.length === 0) role.state = 'ready'
        return
      case 'ended':
        role.state = 'done'
        return
      case 'failed':
        role.state = `failed with ${event.error.code}`
        return
      case 'step':
        this.#takeStep(name, event.step, event.values, nowMs)
    }
  }

  /** A role died and begins anew: what it told counts from the beginning again. */
  restart(name: string): void {
    const role = this.roles.find((one) => one.name === name)
    if (role !== undefined)
      Object.assign(role, { state: 'starting again', values: {}, samples: [], atStep: undefined, timeAtStep: undefined })
  }

  /** Share of the last while that a role waited; undefined before it is known. */
  idleShare(role: RoleState, nowMs: number): number | undefined {
    const [first, last] = [role.samples[0], upTo(nowMs, role)]
    return first === undefined || last === undefined ? undefined : idleBetween(first, last)
  }

  /** Tokens per second of all engines over the last while; undefined where they do not tell. */
  inferenceThroughput(): number | undefined {
    return sum(this.#engines().map(({ samples }) => rateBetween(samples[0], samples.at(-1))))
  }

  trainerThroughput(): number | undefined {
    return this.trained?.values['perf/throughput']
  }

  /** Seconds to the last step; undefined without one, or before the first two. */
  secondsLeft(): number | undefined {
    if (this.maxSteps === null || this.#secondsPerStep === 0 || this.trained === undefined) return undefined
    return (this.maxSteps - this.trained.step - 1) * this.#secondsPerStep
  }

  /** What a step was for the run as a whole: share of time that each role waited since the last, tokens per second of both sides. */
  stepValues(nowMs: number): Record<string, number> {
    const values: Record<string, number> = {}
    const inference = sum(this.#engines().map(({ samples, atStep }) => rateBetween(atStep, samples.at(-1))))
    if (inference !== undefined) values['throughput/inference'] = inference
    const trainer = this.trainerThroughput()
    if (trainer !== undefined) values['throughput/trainer'] = trainer
    for (const role of this.roles) {
      const now = upTo(nowMs, role)
      const idle = role.timeAtStep === undefined || now === undefined ? undefined : idleBetween(role.timeAtStep, now)
      if (idle !== undefined) values[`idle/${role.name}`] = idle
      role.atStep = role.samples.at(-1)
      role.timeAtStep = now
    }
    return values
  }

  #engines(): RoleState[] {
    return this.roles.filter(({ name }) => name.startsWith('inference'))
  }

  #takeStep(name: string, step: number, values: Values, nowMs: number): void {
    if (name === 'trainer') {
      if (this.#lastStepMs !== undefined) {
        const seconds = (nowMs - this.#lastStepMs) / 1000
        this.#secondsPerStep = this.#secondsPerStep === 0 ? seconds : (1 - newest) * this.#secondsPerStep + newest * seconds
      }
      this.#lastStepMs = nowMs
      this.trained = { step, values }
      return
    }
    for (const evaluated of evaluatedNames(values)) {
      const reward = evaluationReward(evaluated, values)
      if (reward !== undefined) this.evaluation = { step, name: evaluated, reward }
    }
    const reward = values['reward/all/mean']
    if (reward === undefined) return
    this.rewards.push(reward)
    this.batch = { step, values }
  }
}

/** A role is in the state that it told last until it tells another. */
function upTo(nowMs: number, { state, samples }: RoleState): Sample | undefined {
  const last = samples.at(-1)
  if (last === undefined) return undefined
  const seconds = Math.max(0, nowMs - last.atMs) / 1000
  return { ...last, total: last.total + seconds, idle: last.idle + (state.startsWith('waiting') ? seconds : 0) }
}

/** Tokens up to now: an engine tells how fast it has been since it last told. */
function generated(before: Sample | undefined, throughput: number | undefined, nowMs: number): number | undefined {
  if (throughput === undefined) return undefined
  return before?.tokens === undefined ? 0 : before.tokens + (throughput * (nowMs - before.atMs)) / 1000
}

function sampleOf(spent: Values, tokens: number | undefined, atMs: number): Sample {
  let [idle, total] = [0, 0]
  for (const [state, seconds] of Object.entries(spent)) {
    total += seconds
    if (state.startsWith('waiting')) idle += seconds
  }
  return { atMs, idle, total, tokens }
}

function idleBetween(first: Sample, last: Sample): number | undefined {
  const total = last.total - first.total
  return total > 0 ? Math.min(1, Math.max(0, (last.idle - first.idle) / total)) : undefined
}

function rateBetween(first: Sample | undefined, last: Sample | undefined): number | undefined {
  if (first?.tokens === undefined || last?.tokens === undefined || last.atMs <= first.atMs) return undefined
  return (1000 * (last.tokens - first.tokens)) / (last.atMs - first.atMs)
}

function sum(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0)
}
