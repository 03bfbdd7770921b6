import { createHash } from 'node:crypto'
import { type RoutedLayout, TrilithonError } from '@trilithon/core'
import type { Engine, EngineEnd, EngineEvent, EngineInfo, EngineRequest, EngineStats, PauseMode, TokenCandidate } from '../engine/engine.ts'
import { iterationBounds } from '../engine/shared-stats.ts'

export interface FakeEngineOptions {
  readonly vocabSize?: number
  readonly maxModelLen?: number
  readonly blocks?: number
  readonly routedLayout?: RoutedLayout | null
  readonly endIds?: readonly number[]
  /** Milliseconds between two steps; 0 steps as fast as the loop turns. */
  readonly stepMs?: number
  /** Most sequences of one step. */
  readonly maxRunning?: number
}

interface Sequence {
  readonly request: EngineRequest
  readonly onEvent: (event: EngineEvent) => void
  readonly tokens: number[]
  isPrompted: boolean
}

export interface FakeEngine extends Engine {
  /** Requests that have not ended. */
  readonly open: number
  /** What was called, in order: `pause keep`, `prepare 3`, … */
  readonly calls: string[]
  /** The next call of that kind fails with this error. */
  failNext(call: 'prepare' | 'flip', error: Error): void
  /** The engine's thread ends. */
  die(error: Error): void
}

/** What a token of that request at that place is: a function of seed, place and version. */
export function fakeToken(seed: bigint, place: number, vocabSize: number): number {
  return Number(BigInt.asUintN(32, (BigInt.asUintN(64, seed) + 1n) * 2654435761n + BigInt(place) * 40503n) % BigInt(vocabSize))
}

/** Row of fake experts: the place of the token, so that a shifted or foreign row is seen. */
export function fakeRow(place: number, { layers, topK }: RoutedLayout): number[] {
  return Array.from({ length: layers * topK }, (_, index) => (place + index) % 200)
}

/** An engine without a model: everything is a function of the request. Its scheduling, pauses, versions and counts are real. */
export function createFakeEngine(options: FakeEngineOptions = {}): FakeEngine {
  const { vocabSize = 128, maxModelLen = 2048, blocks = 1024, routedLayout = null, endIds = [], stepMs = 0, maxRunning = 512 } = options
  const info: EngineInfo = {
    ...{ vocabSize, maxModelLen, blockSize: 16, blocks, profile: 'fp32', kvFormat: 'fake', endIds, routedLayout, parameters: 1 },
  }
  const sequences = new Map<string, Sequence>()
  const calls: string[] = []
  const failures = new Map<string, Error>()
  const cached = new Map<string, number>()
  const counts = { steps: 0, promptTokens: 0, generatedTokens: 0, prefixQueries: 0, prefixHits: 0 }
  const finished: Record<EngineEnd['reason'], number> = { stop: 0, length: 0, abort: 0, error: 0 }
  let version = 0
  let prepared: number | null = null
  let isPaused = false
  let isDead = false
  let timer: NodeJS.Timeout | NodeJS.Immediate | undefined
  let idleWaiters: (() => void)[] = []
  let endThread: (error?: Error) => void = () => undefined
  const ended = new Promise<void>((resolve, reject) => {
    endThread = (error) => (error === undefined ? resolve() : reject(error))
  })
  ended.catch(() => undefined)

  const schedule = () => {
    if (timer !== undefined || isDead || sequences.size === 0 || (isPaused && idleWaiters.length === 0)) return
    timer = stepMs > 0 ? setTimeout(step, stepMs) : setImmediate(step)
  }
  const end = (sequence: Sequence, reason: EngineEnd['reason'], stopId: number | null = null) => {
    const { request, tokens, onEvent } = sequence
    sequences.delete(request.id)
    finished[reason] += 1
    const rows = request.promptIds.length + Math.max(0, tokens.length - 1)
    const from = request.routedExpertsFrom
    const data = from === null || routedLayout === null ? null : rowsOf(from, rows, routedLayout)
    onEvent({
      ...{ kind: 'end', id: request.id, reason, stopId, error: null },
      routedExperts:
        data === null || routedLayout === null
          ? null
          : { data, shape: [Math.max(0, rows - (from ?? 0)), routedLayout.layers, routedLayout.topK], dtype: routedLayout.dtype },
      indexChoices: request.reportsIndexChoices ? { data: Int32Array.of(0, 1, -1, -1), shape: [1, 2, 2] } : null,
    })
    if (sequences.size === 0) for (const resolve of idleWaiters.splice(0)) resolve()
  }
  const prompt = (sequence: Sequence) => {
    const { request } = sequence
    const key = `${request.salt}:${request.promptIds.slice(0, 16).join(',')}`
    const known = Math.min(cached.get(key) ?? 0, request.promptIds.length - 1)
    const cachedTokens = known - (known % info.blockSize)
    cached.set(key, Math.max(cached.get(key) ?? 0, request.promptIds.length))
    counts.promptTokens += request.promptIds.length
    counts.prefixQueries += request.promptIds.length
    counts.prefixHits += cachedTokens
    const logprobs = request.promptLogprobs
    const promptLogprobs =
      logprobs === null ? null : Array.from(request.promptIds, (id, place) => (place === 0 ? [] : candidatesOf(id, place, logprobs, vocabSize)))
    sequence.isPrompted = true
    sequence.onEvent({ kind: 'prompt', id: request.id, cachedTokens, storedTokens: 0, queueSeconds: 0.25, prefillSeconds: 0.5, promptLogprobs })
  }
  const decode = (sequence: Sequence) => {
    const { request, tokens } = sequence
    const place = request.promptIds.length + tokens.length
    const id = fakeToken(request.sampling.seed, place, vocabSize)
    tokens.push(id)
    counts.generatedTokens += 1
    sequence.onEvent({
      ...{ kind: 'tokens', id: request.id, tokenIds: Uint32Array.of(id) },
      logprobs: Float32Array.of(-1 - id / 100),
      versions: Uint32Array.of(version),
      contextVersionsMin: Uint32Array.of(Math.max(0, version - 1)),
      candidates: [request.logprobs === null ? [] : candidatesOf(id, place, request.logprobs, vocabSize)],
    })
    const { stopIds, stopsAtEnd, maxTokens, minTokens } = request.sampling
    if (tokens.length >= minTokens && stopIds.includes(id)) end(sequence, 'stop', id)
    else if (tokens.length >= minTokens && stopsAtEnd && endIds.includes(id)) end(sequence, 'stop')
    else if (tokens.length >= maxTokens) end(sequence, 'length')
  }
  const batch = () => [...sequences.values()].sort((a, b) => a.request.priority - b.request.priority).slice(0, maxRunning)
  const step = () => {
    timer = undefined
    if (isDead || (isPaused && idleWaiters.length === 0)) return
    counts.steps += 1
    for (const sequence of batch()) {
      if (!sequence.isPrompted) prompt(sequence)
      decode(sequence)
    }
    schedule()
  }

  return {
    info,
    calls,
    ended,
    get open() {
      return sequences.size
    },
    failNext: (call, error) => void failures.set(call, error),
    die(error) {
      isDead = true
      endThread(error)
    },
    submit(request, onEvent) {
      if (isDead) throw new TrilithonError('ENGINE_FAILED', 'the engine has ended')
      if (request.promptIds.length >= maxModelLen) throw new TrilithonError('REQUEST_INVALID', 'the prompt is too long')
      sequences.set(request.id, { request, onEvent, tokens: [], isPrompted: false })
      schedule()
    },
    abort(ids) {
      for (const id of ids) {
        setImmediate(() => {
          const sequence = sequences.get(id)
          if (sequence !== undefined && !isDead) end(sequence, 'abort')
        })
      }
    },
    async pause(mode: PauseMode) {
      calls.push(`pause ${mode}`)
      isPaused = true
      if (mode === 'abort') for (const sequence of [...sequences.values()]) end(sequence, 'abort')
      if (mode === 'wait' && sequences.size > 0) {
        await new Promise<void>((resolve) => {
          idleWaiters.push(resolve)
          schedule()
        })
      }
    },
    async resume() {
      calls.push('resume')
      isPaused = false
      idleWaiters = []
      schedule()
    },
    async prepareWeights({ version: next, path }) {
      calls.push(`prepare ${next}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
      const failure = failures.get('prepare')
      failures.delete('prepare')
      if (failure !== undefined) throw failure
      if (path.includes('broken')) throw new TrilithonError('WEIGHTS_INVALID', `${path} is cut short`)
      prepared = next
    },
    async flipWeights(next) {
      calls.push(`flip ${next}`)
      if (!isPaused || prepared !== next) throw new TrilithonError('WEIGHTS_NOT_PREPARED', `version ${next} is not prepared`)
      const failure = failures.get('flip')
      failures.delete('flip')
      if (failure !== undefined) throw failure
      version = next
      prepared = null
    },
    async exchangeWeights(next) {
      calls.push(`exchange ${next}`)
      if (prepared !== next) throw new TrilithonError('WEIGHTS_NOT_PREPARED', `version ${next} is not prepared`)
      version = next
      prepared = null
      isPaused = false
      schedule()
      return { pausedSeconds: 0.002, stepSeconds: 0.01 }
    },
    async finishWeights(next) {
      calls.push(`finish ${next}`)
    },
    async weightChecksums() {
      return { 'model.embed_tokens.weight': createHash('sha256').update(String(version)).digest('hex') }
    },
    async resetPrefixCache({ isExternal }) {
      calls.push(isExternal ? 'reset all' : 'reset')
      cached.clear()
    },
    stats(): EngineStats {
      const running = Math.min(sequences.size, maxRunning)
      return {
        ...{ version, isPaused, running, waiting: sequences.size - running, usedBlocks: running, cachedBlocks: cached.size, ...counts },
        ...{ storeQueries: 0, storeHits: 0, preemptions: 0, finished: { ...finished }, schedulerSeconds: 0, stepSeconds: 0 },
        ...{ iterations: { counts: [...iterationBounds.keys(), iterationBounds.length], tokens: 777 }, idleMs: 0, oldestVersionServed: version },
      }
    },
    async dispose() {
      isDead = true
      clearTimeout(timer as NodeJS.Timeout)
      clearImmediate(timer as NodeJS.Immediate)
      endThread()
    },
  }
}

function rowsOf(from: number, rows: number, layout: RoutedLayout): Uint8Array {
  const list = []
  for (let place = from; place < rows; place++) list.push(...fakeRow(place, layout))
  return Uint8Array.from(list)
}

/** The sampled token, and the most likely ones by their ids. */
function candidatesOf(id: number, place: number, count: number, vocabSize: number): TokenCandidate[] {
  const rank = 1 + ((id + place) % 7)
  const others = Array.from({ length: count }, (_, index) => ({ id: (id + 1 + index) % vocabSize, logprob: -0.5 - index, rank: index + 1 }))
  return [{ id, logprob: -1 - id / 100, rank: rank <= count ? count + 1 : rank }, ...others]
}
