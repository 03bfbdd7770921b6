import type { Logger } from '@trilithon/core'
import type { Renderer, Tokenizer } from '@trilithon/renderers'
import type { Engine } from '../engine/engine.ts'
import type { ActiveRequests } from './active-requests.ts'
import type { RequestMetrics } from './request-metrics.ts'
import type { StatsReader } from './stats-reader.ts'
import type { WeightUpdates } from './weight-updates.ts'

/** Text and chat of the model folder; null where it has no tokeniser. */
export interface TextTools {
  readonly tokenizer: Tokenizer
  /** Null where the model has no chat template. */
  readonly renderer: Renderer | null
}

/** What the routes of one server share. */
export interface ServerContext {
  readonly engine: Engine
  /** Name that requests use. */
  readonly model: string
  readonly modelFolder: string
  /** Seconds since 1970. */
  readonly startedAt: number
  readonly text: TextTools | null
  readonly returnsRoutedExperts: boolean
  readonly livenessTimeoutMs: number
  readonly active: ActiveRequests
  readonly metrics: RequestMetrics
  readonly stats: StatsReader
  readonly weights: WeightUpdates
  readonly log: Logger
  nextSeed(): bigint
  /** The engine has ended, or the server is being closed: why nothing is served any more. */
  closing(): string | null
}
