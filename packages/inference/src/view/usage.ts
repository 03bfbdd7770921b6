import type { EngineInfo, EngineStats } from '../engine/engine.ts'

/** What an engine does, between two looks at its counts. */
export interface Usage {
  readonly version: number
  readonly isPaused: boolean
  readonly running: number
  readonly waiting: number
  /** Generated tokens per second. */
  readonly throughput: number
  readonly promptThroughput: number
  /** Share of the KV blocks that requests hold. */
  readonly cacheUse: number
  /** Share of the prompt tokens that were found in the prefix cache or the store; null where there was no prompt. */
  readonly hitRate: number | null
  /** Requests that have ended. */
  readonly finished: number
  readonly preemptions: number
  /** Whether anything happened. */
  readonly isActive: boolean
}

/** Turns counts into rates. */
export class UsageMeter {
  readonly #info: Pick<EngineInfo, 'blocks'>
  #before: EngineStats
  #beforeMs: number

  constructor(info: Pick<EngineInfo, 'blocks'>, stats: EngineStats, nowMs: number) {
    this.#info = info
    this.#before = stats
    this.#beforeMs = nowMs
  }

  /** Since the last call. */
  take(stats: EngineStats, nowMs: number): Usage {
    const before = this.#before
    const seconds = Math.max(1e-3, (nowMs - this.#beforeMs) / 1000)
    this.#before = stats
    this.#beforeMs = nowMs
    const queries = stats.prefixQueries - before.prefixQueries
    const hits = stats.prefixHits - before.prefixHits + stats.storeHits - before.storeHits
    const ended = (counts: EngineStats) => Object.values(counts.finished).reduce((sum, count) => sum + count, 0)
    const finished = ended(stats) - ended(before)
    return {
      ...{ version: stats.version, isPaused: stats.isPaused, running: stats.running, waiting: stats.waiting, finished },
      throughput: (stats.generatedTokens - before.generatedTokens) / seconds,
      promptThroughput: (stats.promptTokens - before.promptTokens) / seconds,
      cacheUse: stats.usedBlocks / Math.max(1, this.#info.blocks),
      hitRate: queries > 0 ? hits / queries : null,
      preemptions: stats.preemptions - before.preemptions,
      isActive: stats.steps !== before.steps || finished > 0 || stats.version !== before.version || stats.isPaused !== before.isPaused,
    }
  }
}

/** What an engine is doing, in a word or two; what begins with `waiting` is idle. */
export function stateOf({ isPaused, running, waiting }: Usage): string {
  if (isPaused) return 'paused'
  return running + waiting > 0 ? 'generating' : 'waiting for requests'
}

/** Several engines as one. */
export function sumUsage(usages: readonly Usage[]): Usage {
  const sum = (value: (usage: Usage) => number) => usages.reduce((total, usage) => total + value(usage), 0)
  const rates = usages.flatMap(({ hitRate }) => (hitRate === null ? [] : [hitRate]))
  return {
    version: Math.min(...usages.map(({ version }) => version)),
    isPaused: usages.every(({ isPaused }) => isPaused),
    ...{ running: sum(({ running }) => running), waiting: sum(({ waiting }) => waiting), throughput: sum(({ throughput }) => throughput) },
    promptThroughput: sum(({ promptThroughput }) => promptThroughput),
    cacheUse: sum(({ cacheUse }) => cacheUse) / Math.max(1, usages.length),
    hitRate: rates.length === 0 ? null : rates.reduce((total, rate) => total + rate, 0) / rates.length,
    ...{ finished: sum(({ finished }) => finished), preemptions: sum(({ preemptions }) => preemptions) },
    isActive: usages.some(({ isActive }) => isActive),
  }
}

/** Values of a line of metrics, and of a status. */
export function usageValues(usage: Usage): Record<string, number> {
  return {
    ...{ running: usage.running, waiting: usage.waiting, throughput: usage.throughput, 'throughput/prompt': usage.promptThroughput },
    ...{ 'cache/use': usage.cacheUse, ...(usage.hitRate === null ? {} : { 'cache/hit_rate': usage.hitRate }) },
    ...{ finished: usage.finished, preemptions: usage.preemptions, version: usage.version, paused: Number(usage.isPaused) },
  }
}

/** The other way round, for who hears of it. */
export function usageOf(values: Readonly<Record<string, number>>): Usage {
  const value = (name: string) => values[name] ?? 0
  return {
    ...{ version: value('version'), isPaused: value('paused') === 1, running: value('running'), waiting: value('waiting') },
    ...{ throughput: value('throughput'), promptThroughput: value('throughput/prompt'), cacheUse: value('cache/use') },
    hitRate: values['cache/hit_rate'] ?? null,
    ...{ finished: value('finished'), preemptions: value('preemptions') },
    isActive: value('running') + value('waiting') + value('throughput') + value('finished') > 0,
  }
}
