import { type Logger, type PolicyVersion, type RouteLease, type Router, TrilithonError, type WorkerId } from '@trilithon/core'
import type { EpisodeRequest, EpisodeResult } from '@trilithon/environments'
import { evalSeed } from '../evals/eval-seed.ts'
import type { LiveFleet } from '../fleet/live-fleet.ts'
import type { Clock } from '../run/clock.ts'
import { Wake } from '../run/wake.ts'
import type { GroupPlan } from './group-plan.ts'
import { RateLimit } from './rate-limit.ts'
import { type Flight, oldestOf, RunningGroup, rolloutIdOf } from './running-group.ts'

/** What all requests of a run have in common. */
export interface RequestFacts {
  readonly model: string
  readonly headersOf: (episode: {
    readonly rolloutId: string
    readonly groupId: string
    readonly taskIndex: number
  }) => Readonly<Record<string, string>>
  readonly apiKeyVar: string | null
  readonly wantsRoutedExperts: boolean
  /** Makes, with split and index, the task of an environment. */
  readonly datasetSeed: number
  /** Where requests go instead of the URL of the leased engine; null: there. */
  readonly routerUrl: string | null
}

export interface DispatcherOptions {
  readonly router: Router
  readonly fleet: LiveFleet
  readonly clock: Clock
  readonly log: Logger
  readonly maxInflight: number
  readonly tasksPerMinute: number | null
  readonly facts: RequestFacts
  /** The version that serves now. */
  readonly policy: { readonly version: PolicyVersion }
  /** Whether episodes of training may be started now, of new groups or of begun ones. */
  readonly mayTrain: () => boolean
  /** Whether another group may be begun beside so many episodes in flight; left out: while there is room. Begun groups go on. */
  readonly mayBegin?: (kind: GroupPlan['kind'], inFlight: { readonly train: number; readonly eval: number }) => boolean
  /** The next group to begin, or undefined. Called only where there is room for its first episode. */
  readonly nextTrain: () => GroupPlan | undefined
  readonly nextEval: () => GroupPlan | undefined
}

/** Episodes that run. */
export interface Flying {
  readonly episodes: number
  /** When one of them was last begun, ended or came to the end of a turn. */
  readonly lifeMs: number
  readonly oldest: Flight | undefined
}

/**
 * The oldest version that may answer the request. An engine that was started anew serves its model folder until it is brought to the version of the run, and would
 * put keys of that into the cache under the salt of this one; ours answers 503 until then.
 */
const leastVersionHeader = 'X-Min-Weight-Version'
/** A lease without a deadline of its own lasts a day. */
const longestLeaseMs = 86_400_000
/** How long the environments may take to acknowledge that episodes were cancelled. */
const acknowledgeMs = 10_000

/**
 * Starts episodes while there is room: evaluations before training, begun groups before new ones. Each episode has one lease, which ends with it. What went wrong
 * in an episode is part of its result; a router that throws ends `run`.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #groups = new Map<string, RunningGroup>()
  /** Flights whose engine failed; they keep their place. */
  readonly #again: Flight[] = []
  readonly #wake = new Wake()
  readonly #rate: RateLimit
  readonly #inflight = { train: 0, eval: 0 }
  readonly #finished = { train: 0, eval: 0 }
  /** What went wrong in our own code or in what it was given, outside of an episode. */
  #failure: { readonly error: unknown } | undefined
  #isHeld = false
  /** When an episode was last begun, ended or came to the end of a turn. */
  #lifeMs = 0
  #waitReason: string | null = null

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#rate = new RateLimit(options.tasksPerMinute, options.clock)
  }

  /** Something changed that may let an episode start. */
  readonly wake = (): void => this.#wake.wake()

  /** While held nothing starts: a version is being changed, and a group has the salt of the one that serves. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.wake()
  }

  /** Until the signal aborts; then all episodes are cancelled and acknowledged. */
  async run(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#options.fleet.onChange(this.wake)
    signal.addEventListener('abort', this.wake, { once: true })
    try {
      while (!signal.aborted) {
        if (this.#failure !== undefined) throw this.#failure.error
        if (!(await this.#step(signal)) && !signal.aborted) await this.#wake.next()
      }
    } finally {
      unsubscribe()
      signal.removeEventListener('abort', this.wake)
      await this.cancel(() => true, 'end')
    }
  }

  get stats() {
    const groups = [...this.#groups.values()]
    const levels = groups.filter(({ plan }) => plan.kind === 'train').map(({ oldest }) => this.#options.policy.version - oldest)
    const known = levels.filter(Number.isFinite)
    return {
      inflightTrain: this.#inflight.train,
      inflightEval: this.#inflight.eval,
      finishedTrain: this.#finished.train,
      finishedEval: this.#finished.eval,
      groups: groups.length,
      offPolicyMax: Math.max(0, ...known),
      offPolicyMean: known.length === 0 ? 0 : known.reduce((sum, level) => sum + level, 0) / known.length,
      waitReason: this.#waitReason,
    }
  }

  /** Rollouts that begun groups of training may still bring: all of their episodes but those that failed. */
  get expectedTrain(): number {
    let expected = 0
    for (const { plan, failed } of this.#groups.values()) if (plan.kind === 'train') expected += plan.size - failed
    return expected
  }

  /** Episodes in flight. */
  get inFlight(): number {
    return this.#inflight.train + this.#inflight.eval
  }

  get isIdle(): boolean {
    return this.#groups.size === 0
  }

  /** What runs, since when nothing of it was heard, and which episode was begun first; while a version is being changed, nothing. */
  get flying(): Flying {
    const flights = this.#isHeld ? [] : [...this.#groups.values()].flatMap(({ flights }) => [...flights])
    let oldest: Flight | undefined
    for (const flight of flights) if (oldest === undefined || flight.startedMs < oldest.startedMs) oldest = flight
    return { episodes: flights.reduce((sum, { indices }) => sum + indices.length, 0), lifeMs: this.#lifeMs, oldest }
  }

  /** Gives up groups as wholes. Resolves when the environments have acknowledged it, or have not within ten seconds. */
  async cancel(chooses: (group: RunningGroup) => boolean, reason: 'stale' | 'end'): Promise<void> {
    const pending: Promise<void>[] = []
    for (const group of [...this.#groups.values()].filter(chooses)) {
      group.isCancelled = true
      this.#groups.delete(group.plan.id)
      const waiting = this.#again.filter((flight) => flight.group === group)
      for (const flight of waiting) this.#again.splice(this.#again.indexOf(flight), 1)
      for (const { indices } of waiting) this.#inflight[group.plan.kind] -= indices.length
      const running = [...group.flights, ...waiting].reduce((sum, { indices }) => sum + indices.length, 0)
      for (const flight of group.flights) {
        pending.push(flight.ended)
        flight.controller.abort()
      }
      group.plan.cancelled({ running, finished: group.arrived, reason })
    }
    if (pending.length === 0) return
    const timer = new AbortController()
    const late = this.#options.clock.sleep(acknowledgeMs, timer.signal).then(() => {
      if (!timer.signal.aborted) this.#options.log.warn('environments did not acknowledge that episodes were cancelled', { acknowledgeMs })
    })
    await Promise.race([Promise.allSettled(pending), late])
    timer.abort()
    this.wake()
  }

  /** Groups of training that would be older than `bound` in batch `step`, the next that they can be in. */
  cancelStale(step: number, bound: number): Promise<void> {
    return this.cancel(({ plan, oldest }) => plan.kind === 'train' && step - oldest > bound, 'stale')
  }

  /** Takes the episodes of an engine that failed elsewhere. */
  leave(worker: WorkerId): void {
    for (const group of this.#groups.values())
      for (const flight of group.flights) {
        if (flight.isLost || !flight.leases.some((lease) => lease.worker === worker)) continue
        flight.isLost = true
        flight.exclude.push(worker)
        flight.controller.abort()
      }
  }

  /** Starts one flight; false where nothing can be started now. */
  async #step(signal: AbortSignal): Promise<boolean> {
    if (this.#isHeld) return false
    const again = this.#again[0]
    if (again !== undefined) {
      this.#forgive(again)
      const leases = await this.#lease(again)
      if (leases === undefined) return false
      this.#again.splice(this.#again.indexOf(again), 1)
      this.#start(again, leases)
      return true
    }
    const group = this.#choose()
    if (group === undefined) return false
    const waitMs = this.#rate.take(group.unit)
    if (waitMs > 0) {
      await this.#options.clock.sleep(waitMs, signal)
      return true
    }
    if (group.scheduled === 0) group.version = this.#options.policy.version
    const indices = Array.from({ length: group.unit }, (_, index) => group.scheduled + index)
    const flight: Flight = {
      ...{ group, indices, exclude: [], controller: new AbortController(), leases: [], isLost: false, ended: Promise.resolve() },
      version: this.#options.policy.version,
      startedMs: this.#options.clock.nowMs(),
      sampled: Number.POSITIVE_INFINITY,
    }
    const leases = await this.#lease(flight)
    if (leases === undefined) return false
    group.scheduled += indices.length
    this.#inflight[group.plan.kind] += indices.length
    this.#start(flight, leases)
    return true
  }

  #choose(): RunningGroup | undefined {
    const { maxInflight, mayTrain, mayBegin, nextTrain, nextEval } = this.#options
    const used = this.#inflight.train + this.#inflight.eval
    // A group that is larger than all places runs alone.
    const fits = (group: RunningGroup) => used + group.unit <= maxInflight || used === 0
    if (used >= maxInflight) return undefined
    for (const kind of ['eval', 'train'] as const) {
      if (kind === 'train' && !mayTrain()) continue
      let group = this.#begun(kind)
      if (group === undefined) {
        if (mayBegin?.(kind, this.#inflight) === false) continue
        const plan = kind === 'eval' ? nextEval() : nextTrain()
        if (plan === undefined) continue
        group = new RunningGroup(plan)
        this.#groups.set(plan.id, group)
      }
      return fits(group) ? group : undefined
    }
    return undefined
  }

  /** The oldest group with episodes that were not started. */
  #begun(kind: GroupPlan['kind']): RunningGroup | undefined {
    for (const group of this.#groups.values()) if (group.plan.kind === kind && !group.isScheduled) return group
    return undefined
  }

  /** A lease for each episode of a flight; undefined where an engine has to be waited for, or the state changed meanwhile. */
  async #lease(flight: Flight): Promise<readonly RouteLease[] | undefined> {
    const { router, fleet, facts, policy } = this.#options
    const { group, indices, exclude } = flight
    const { plan } = group
    const leases: RouteLease[] = []
    for (const index of indices) {
      const answer = await router.route(
        {
          sessionId: rolloutIdOf(plan.id, index),
          groupId: plan.id,
          promptTokens: 0,
          salt: String(group.version),
          needs: facts.wantsRoutedExperts && plan.kind === 'train' ? ['routed_experts'] : [],
          minPolicyVersion: policy.version,
          exclude,
          leaseMs: plan.environment.leaseMs ?? longestLeaseMs,
        },
        fleet,
      )
      if (answer.status === 'leased') leases.push(answer.lease)
      else if (this.#waitReason !== answer.reason) {
        this.#waitReason = answer.reason
        this.#options.log.debug('waiting for an engine', { reason: answer.reason })
      }
    }
    const isStillRight =
      !group.isCancelled && !this.#isHeld && (plan.kind === 'eval' || flight.leases.length > 0 || this.#options.mayTrain())
    if (leases.length === indices.length && isStillRight) {
      this.#waitReason = null
      return leases
    }
    for (const lease of leases) lease.end({ ok: false, error: 'not used' })
    for (const index of indices) router.endSession(rolloutIdOf(plan.id, index))
    return undefined
  }

  #start(flight: Flight, leases: readonly RouteLease[]): void {
    flight.leases = leases
    flight.controller = new AbortController()
    flight.isLost = false
    flight.version = this.#options.policy.version
    flight.startedMs = this.#lifeMs = this.#options.clock.nowMs()
    flight.sampled = Number.POSITIVE_INFINITY
    flight.group.flights.add(flight)
    flight.ended = this.#fly(flight).catch((error: unknown) => {
      this.#failure ??= { error }
      this.wake()
    })
  }

  async #fly(flight: Flight): Promise<void> {
    const { group, indices, leases, controller } = flight
    const { environment } = group.plan
    const { signal } = controller
    const requests = indices.map((index, place) => this.#request(flight, index, leases[place] as RouteLease))
    const lives = () => {
      this.#lifeMs = this.#options.clock.nowMs()
    }
    const onTurn = ({ versions }: { readonly versions: Uint32Array }) => {
      lives()
      flight.sampled = Math.min(flight.sampled, oldestOf([{ versions }]))
    }
    const [first] = requests
    const results =
      environment.pool.scoring === 'group' || first === undefined
        ? await environment.pool.runGroup(requests, { signal, onTurn: lives })
        : [await environment.pool.run(first, { signal, onTurn })]
    group.flights.delete(flight)
    lives()
    const failure = results.find(({ error }) => error !== undefined)?.error
    const outcome = (result: EpisodeResult | undefined) => ({
      ok: failure === undefined,
      outputTokens: (result?.turns ?? []).reduce((sum, { completionIds }) => sum + completionIds.length, 0),
      ...(failure === undefined ? {} : { error: failure.message }),
    })
    for (const [place, lease] of leases.entries()) lease.end(outcome(results[place]))
    for (const { session } of requests) this.#options.router.endSession(session)
    if (this.#fliesAgain(flight, failure?.type)) this.#again.push(flight)
    else this.#land(flight, results)
    this.wake()
  }

  /** Where every engine that is left has failed a flight, any of them, or one that comes back, may try it again. */
  #forgive({ exclude }: Flight): void {
    for (const { id, state } of this.#options.fleet.workers()) if (state !== 'failed' && !exclude.includes(id)) return
    exclude.length = 0
  }

  /** Whether another engine gets a flight that one engine failed, or that one itself when it is back. */
  #fliesAgain(flight: Flight, failure: string | undefined): boolean {
    if (flight.group.isCancelled) return false
    if (flight.isLost) return true
    if (failure !== 'EngineUnavailable') return false
    const own = flight.leases.map(({ worker }) => worker)
    flight.exclude.push(...own)
    for (const { id, state } of this.#options.fleet.workers())
      if (state === 'failed' ? own.includes(id) : !flight.exclude.includes(id)) return true
    return false
  }

  #land({ group, indices, leases, version }: Flight, results: readonly EpisodeResult[]): void {
    const { plan } = group
    this.#inflight[plan.kind] -= indices.length
    // A late result of something that was given up is nobody's.
    if (group.isCancelled) return
    if (results.length !== indices.length)
      throw new TrilithonError('ENVIRONMENT_INVALID', `${plan.environment.name} answered ${results.length} episodes for ${indices.length}`)
    for (const [place, index] of indices.entries()) {
      const result = results[place] as EpisodeResult
      group.arrive(result)
      this.#finished[plan.kind]++
      const isLast = group.arrived === plan.size
      if (isLast) this.#groups.delete(plan.id)
      const worker = leases[place]?.worker ?? ''
      plan.finished({ rolloutId: rolloutIdOf(plan.id, index), result, version, worker }, { version: group.version, isLast })
    }
  }

  #request({ group, version }: Flight, index: number, lease: RouteLease): EpisodeRequest {
    const { facts, fleet } = this.#options
    const { plan } = group
    const { environment } = plan
    const rolloutId = rolloutIdOf(plan.id, index)
    return {
      ...{ rolloutId, groupId: plan.id, taskIndex: plan.taskIndex, split: environment.split, seed: facts.datasetSeed },
      samplingSeed:
        plan.kind === 'eval'
          ? evalSeed({ seed: facts.datasetSeed, environment: environment.name, taskIndex: plan.taskIndex, index })
          : null,
      baseUrl: facts.routerUrl ?? fleet.urlOf(lease.worker),
      headers: {
        ...facts.headersOf({ rolloutId, groupId: plan.id, taskIndex: plan.taskIndex }),
        ...fleet.headersOf(lease.worker),
        [leastVersionHeader]: String(version),
        ...lease.headers,
      },
      salt: String(group.version),
      session: rolloutId,
      lease: { id: rolloutId, deadlineMs: environment.leaseMs },
      model: facts.model,
      sampling: environment.sampling,
      maxSeqLen: environment.maxSeqLen,
      apiKeyVar: facts.apiKeyVar,
      wantsRoutedExperts: facts.wantsRoutedExperts && plan.kind === 'train',
    }
  }
}
