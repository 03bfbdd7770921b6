// @ts-check
/**
 * What asynchrony pays: steps per minute of the orchestrator at `max_async_level` 1 against 0, same code and seed, on episodes with a long tail.
 *
 *   node tools/bench/async.mjs [--steps 300] [--seed 1] [--json]     (after ./trilithon build)
 *
 * Only engines, trainer and clock are played: an episode takes a log-normal time (p50 one second, p99 ten times that), a step of the trainer 0.2 seconds,
 * batch 128, groups of 4, 128 episodes in flight, bound on lag 8. Time is virtual, so the figures are those of the schedule and repeat exactly.
 */
import { setMaxListeners } from 'node:events'
import { setImmediate as immediate } from 'node:timers/promises'
import { parseArgs } from 'node:util'

const orchestratorEntry = '../../packages/orchestrator/dist/index.js'
const coreEntry = '../../packages/core/dist/index.js'
const builtinEntry = '../../packages/builtin/dist/index.js'
/** @type {typeof import('@trilithon/orchestrator')} */
const { Orchestrator, LiveFleet, VersionHolds, defaultAdvantage } = await import(orchestratorEntry)
/** @type {typeof import('@trilithon/builtin')} */
const { stickyRouter } = await import(builtinEntry)
/** @type {typeof import('@trilithon/core')} */
const { silentLogger } = await import(coreEntry)

const groupSize = 4
const batchSize = 128
const inFlight = 128
const bound = 8
const p50Ms = 1000
const stepMs = 200
/** ln(10) over the 99th percentile of a normal distribution. */
const sigma = Math.log(10) / 2.3263478740408408
const tenthMs = p50Ms * Math.exp(sigma * 1.2815515655446004)

/** Jumps from timer to timer when all promises have settled. */
class VirtualClock {
  #nowMs = 0
  #order = 0
  /** @type {{ atMs: number, order: number, resolve: () => void }[]} */
  #timers = []

  nowMs() {
    return this.#nowMs
  }

  /** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const abort = () => {
        this.#timers = this.#timers.filter((one) => one !== timer)
        resolve()
      }
      const finish = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      const timer = { atMs: this.#nowMs + ms, order: this.#order++, resolve: finish }
      signal?.addEventListener('abort', abort, { once: true })
      const place = this.#timers.findIndex(({ atMs }) => atMs > timer.atMs)
      this.#timers.splice(place === -1 ? this.#timers.length : place, 0, timer)
    })
  }

  /** @param {Promise<void>} work */
  async run(work) {
    let isDone = false
    const end = () => {
      isDone = true
    }
    work.then(end, end)
    for (;;) {
      await immediate()
      if (isDone) return work
      const timer = this.#timers.shift()
      if (timer === undefined) continue
      this.#nowMs = timer.atMs
      timer.resolve()
    }
  }
}

/** A number in (0, 1) of two others. @param {number} seed @param {number} index */
function uniform(seed, index) {
  let value = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) + Math.imul(index, 0xc2b2ae35)) | 0
  value = Math.imul(value ^ (value >>> 16), 0x21f0aaad)
  value = Math.imul(value ^ (value >>> 15), 0x735a2d97)
  return (((value ^ (value >>> 15)) >>> 0) + 0.5) / 2 ** 32
}

/** Time of an episode: a function of its task and its place in the group. @param {number} seed @param {number} index */
function episodeMs(seed, index) {
  const normal = Math.sqrt(-2 * Math.log(uniform(seed, 2 * index))) * Math.cos(2 * Math.PI * uniform(seed, 2 * index + 1))
  return p50Ms * Math.exp(sigma * normal)
}

/** @param {{ level: number, steps: number, seed: number }} options */
async function measure({ level, steps, seed }) {
  const clock = new VirtualClock()
  const engine = 'http://engine.test'
  const fleet = new LiveFleet([{ url: engine, adminUrl: engine, ranks: 1 }], clock)
  fleet.change(engine, { state: 'ready' })
  let served = 0
  let published = 0
  let started = 0
  let cancelled = 0
  let busyMs = 0
  let isEnding = false
  let trainerIdleMs = 0
  /** @type {number[]} */
  const trainedMs = []
  /** @type {Map<string, number>} */
  const durations = new Map()
  /** @type {number[]} */
  const lags = []
  /** @type {number[]} */
  const queue = []
  /** @type {(() => void)[]} */
  const waiting = []
  const tell = () => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  /** @param {AbortSignal} signal @returns {Promise<void>} */
  const change = (signal) =>
    new Promise((resolve) => {
      const finish = () => {
        signal.removeEventListener('abort', finish)
        resolve()
      }
      if (signal.aborted) return resolve()
      waiting.push(finish)
      signal.addEventListener('abort', finish, { once: true })
    })

  /** @type {import('@trilithon/orchestrator').EpisodePool} */
  const pool = {
    ...{ name: 'long-tail', tasks: null, evalTasks: null, scoring: 'rollout' },
    async run(request, { signal }) {
      const place = Number(request.rolloutId.split('.')[1])
      const ms = episodeMs(seed, request.taskIndex * groupSize + place)
      const beginMs = clock.nowMs()
      const first = served
      started++
      await clock.sleep(ms, signal)
      busyMs += clock.nowMs() - beginMs
      const common = {
        ...{ metrics: {}, isTruncated: false, extensionBreaks: 0, state: {}, taskId: String(request.taskIndex) },
        timing: { total: ms / 1000, generation: ms / 1000, model: ms / 1000, scoring: 0 },
      }
      if (signal.aborted) {
        // What is in flight when the run ends is not counted.
        if (!isEnding) cancelled++
        else started--
        return { ...common, turns: [], reward: null, stopCondition: 'error', error: { type: 'Cancelled', message: 'cancelled' } }
      }
      durations.set(request.rolloutId, ms)
      const versions = Uint32Array.of(first, served)
      return {
        ...common,
        turns: [
          {
            ...{ promptIds: Uint32Array.of(1), completionIds: Uint32Array.of(2, 3), logprobs: new Float32Array(2), versions },
            ...{ contextVersionsMin: versions, temperature: 1, finishReason: 'stop' },
          },
        ],
        ...{ reward: uniform(seed + 1, request.taskIndex * groupSize + place), stopCondition: 'completed' },
      }
    },
    runGroup: async () => [],
  }

  const orchestrator = new Orchestrator({
    settings: {
      ...{ maxSteps: steps, batchSize, tokenBatchSize: null, maxInflight: inFlight, tasksPerMinute: null, seqLen: 2048, profile: 'fp32' },
      ...{ maxAsyncLevel: level, maxOffPolicySteps: bound, checkpointInterval: null, skipsFirstEval: true, logInterval: 1e9 },
      ...{ pollsEngines: false, recoveryS: 0, checkedModel: null, stallTimeoutS: null },
    },
    train: [
      {
        environment: { name: pool.name, pool, split: 'train', sampling: { temperature: 1 }, maxSeqLen: 2048, leaseMs: null },
        ...{ groupSize, ratio: null },
        advantage: defaultAdvantage({ length_penalty: null, length_weighted_baseline: false, normalize_by_deviation: false }),
      },
    ],
    ...{ evals: [], preFilters: [], postFilters: [], fleet, clock, progress: null, version: 0, isResume: false },
    router: /** @type {import('@trilithon/core').Router} */ (await stickyRouter.create(/** @type {never} */ ({ config: {}, needs: {} }))),
    admin: {
      isHealthy: async () => true,
      models: async () => [],
      version: async () => served,
      load: async () => ({ running: 0, waiting: 0, kvUsage: 0, prefixQueries: 0, prefixHits: 0, generatedTokens: 0 }),
      prepare: async () => ({ betweenSteps: true }),
      exchange: async (_, version) => {
        served = version
        return { pausedSeconds: 0, stepSeconds: 0 }
      },
      pause: async () => undefined,
      flip: async (_, version) => {
        served = version
      },
      resume: async () => undefined,
      finish: async () => undefined,
      dispose: async () => undefined,
    },
    facts: { model: 'm', headersOf: () => ({}), apiKeyVar: null, wantsRoutedExperts: false, datasetSeed: 42, routerUrl: null },
    sender: {
      async send(step, samples) {
        for (const { id, versions } of samples) {
          const rollout = id.slice(0, id.lastIndexOf('.'))
          trainedMs.push(durations.get(rollout) ?? Number.NaN)
          durations.delete(rollout)
          lags.push(step - Math.min(...versions))
        }
        isEnding = step === steps - 1
        queue.push(step)
        tell()
      },
    },
    async watchVersions(onVersion, { signal, above }) {
      for (let last = above; !signal.aborted; ) {
        if (published > last) {
          last = published
          await onVersion(last)
        } else await change(signal)
      }
    },
    folderOf: String,
    holds: new VersionHolds(() => ({ release: () => undefined })),
    files: { saveRecords: async () => undefined, saveCheckpoint: null },
    log: silentLogger,
    report: () => undefined,
  })

  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  const trainer = async () => {
    while (!controller.signal.aborted) {
      const sinceMs = clock.nowMs()
      while (queue.length === 0 && !controller.signal.aborted) await change(controller.signal)
      trainerIdleMs += clock.nowMs() - sinceMs
      const step = queue.shift()
      if (step === undefined) return
      await clock.sleep(stepMs, controller.signal)
      published = step + 1
      tell()
    }
  }
  const training = trainer()
  await clock.run(orchestrator.run(controller.signal).finally(() => controller.abort()))
  await training
  const totalMs = clock.nowMs()
  return {
    level,
    stepsPerMinute: (steps * 60_000) / totalMs,
    trainerIdle: trainerIdleMs / totalMs,
    engineIdle: 1 - busyMs / (totalMs * inFlight),
    cancelled: cancelled / started,
    slowestTenth: trainedMs.filter((ms) => ms >= tenthMs).length / trainedMs.length / 0.1,
    meanLag: lags.reduce((sum, lag) => sum + lag, 0) / lags.length,
    maxLag: lags.reduce((most, lag) => Math.max(most, lag), 0),
  }
}

const { values } = parseArgs({
  options: { steps: { type: 'string', default: '300' }, seed: { type: 'string', default: '1' }, json: { type: 'boolean', default: false } },
})
const options = { steps: Number(values.steps), seed: Number(values.seed) }
const [off, on] = [await measure({ level: 0, ...options }), await measure({ level: 1, ...options })]
const ratio = on.stepsPerMinute / off.stepsPerMinute
if (values.json) process.stdout.write(`${JSON.stringify({ ...options, off, on, ratio })}\n`)
else {
  const percent = (/** @type {number} */ value) => `${(100 * value).toFixed(1)}%`
  for (const one of [off, on])
    process.stdout.write(
      `max_async_level ${one.level}: ${one.stepsPerMinute.toFixed(2)} steps/min; idle: trainer ${percent(one.trainerIdle)}, engine places ${percent(one.engineIdle)}; ` +
        `cancelled ${percent(one.cancelled)}; slowest tenth represented ${percent(one.slowestTenth)}; lag mean ${one.meanLag.toFixed(2)}, max ${one.maxLag}\n`,
    )
  process.stdout.write(`level 1 over level 0: ${ratio.toFixed(2)}x (steps ${options.steps}, seed ${options.seed})\n`)
}
