import type { PolicyVersion } from '@trilithon/core'

/** Load that an engine reports. */
export interface EngineLoad {
  readonly running: number
  readonly waiting: number
  /** Share of KV blocks in use. */
  readonly kvUsage: number
  /** Since the engine started: prompt tokens that were looked up in its cache, those of them that were found, and tokens that it generated. */
  readonly prefixQueries: number
  readonly prefixHits: number
  readonly generatedTokens: number
  /** Requests that lost their KV and were computed again, since the engine started; left out where it does not tell. */
  readonly preemptions?: number
}

export interface PreparedWeights {
  /** The engine can change to them between two steps by itself, with `exchange`; others are paused, flipped and resumed. */
  readonly betweenSteps: boolean
}

/** As the engine says it. */
export interface ExchangedWeights {
  /** In which the engine took no step. */
  readonly pausedSeconds: number
  /** Of the step before. */
  readonly stepSeconds: number
}

/**
 * The administration of engines, by their URLs; never through a router. Every call may be repeated: an engine answers what is done already as done. A call
 * that fails for good rejects with `ENGINE_FAILED` and the engine's own text, one that the signal ends with the signal's reason.
 */
export interface EngineAdmin {
  isHealthy(engine: string, signal?: AbortSignal): Promise<boolean>
  models(engine: string, signal?: AbortSignal): Promise<readonly string[]>
  version(engine: string, signal?: AbortSignal): Promise<PolicyVersion>
  /** Reads and checks a version beside the one that serves. */
  prepare(engine: string, version: PolicyVersion, path: string, signal?: AbortSignal): Promise<PreparedWeights>
  /** Pause, flip and resume as one call, of an engine that offers it. */
  exchange(engine: string, version: PolicyVersion, signal?: AbortSignal): Promise<ExchangedWeights>
  /** Resolves when no step runs any more; requests in flight are kept. */
  pause(engine: string, signal?: AbortSignal): Promise<void>
  flip(engine: string, version: PolicyVersion, signal?: AbortSignal): Promise<void>
  /** Is made once also behind the signal: no engine stays paused because a run ends. */
  resume(engine: string, signal?: AbortSignal): Promise<void>
  /** Frees the version before. */
  finish(engine: string, version: PolicyVersion, signal?: AbortSignal): Promise<void>
  load(engine: string): Promise<EngineLoad>
  dispose(): Promise<void>
}
