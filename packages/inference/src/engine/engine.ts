import type { KVBlock, KVKey, OpaquePayload, PolicyVersion, RoutedLayout } from '@trilithon/core'

/** How the tokens of a request are chosen. Names and meaning are vLLM's. */
export interface SamplingOptions {
  /** 0 takes the most likely token. */
  readonly temperature: number
  /** 0: all. */
  readonly topK: number
  readonly topP: number
  readonly minP: number
  /** A token follows from seed and position alone, whatever runs beside it. */
  readonly seed: bigint
  readonly maxTokens: number
  readonly minTokens: number
  readonly stopIds: readonly number[]
  /** Stop at the end tokens of the model as well. */
  readonly stopsAtEnd: boolean
}

/** One sequence to continue. A request of `n` completions is `n` of these. */
export interface EngineRequest {
  readonly id: string
  readonly promptIds: Uint32Array
  readonly sampling: SamplingOptions
  /** Part of the key of every KV block; empty is a salt like any other. */
  readonly salt: string
  readonly tenant: string
  /** Smaller is served earlier; equal ones in the order of arrival. */
  readonly priority: number
  /** Most likely tokens to report beside each sampled one; null reports no log-probabilities. */
  readonly logprobs: number | null
  /** The same of the prompt's tokens. */
  readonly promptLogprobs: number | null
  /** Report the experts of the rows from this one on; null reports none. */
  readonly routedExpertsFrom: number | null
  /** Report the keys that the indexers chose, for diagnosis. */
  readonly reportsIndexChoices: boolean
  /** KV of the prompt that another engine computed, with the first token that it sampled. */
  readonly imported: ImportedPrompt | null
}

export interface ImportedPrompt {
  readonly blocks: readonly { readonly key: KVKey; readonly block: KVBlock }[]
  readonly firstToken: {
    readonly id: number
    readonly logprob: number
    readonly version: PolicyVersion
    readonly contextVersionMin: PolicyVersion
  } | null
}

/** One candidate at a place of the sequence. Ranks count from 1. */
export interface TokenCandidate {
  readonly id: number
  readonly logprob: number
  readonly rank: number
}

/** What one step of the engine adds to a sequence. All arrays have one entry per new token. */
export interface EngineTokens {
  readonly kind: 'tokens'
  readonly id: string
  readonly tokenIds: Uint32Array
  /** Of all tokens after temperature (at 0: at 1), whatever top-k, top-p and min-p leave out: as the trainer's head computes it. */
  readonly logprobs: Float32Array
  readonly versions: Uint32Array
  readonly contextVersionsMin: Uint32Array
  /** The sampled token first, then the most likely ones; empty where none were asked for. */
  readonly candidates: readonly (readonly TokenCandidate[])[]
}

export interface EnginePrompt {
  readonly kind: 'prompt'
  readonly id: string
  /** Tokens of the prompt whose KV was found in the cache or the store. */
  readonly cachedTokens: number
  /** Tokens of these that came back from the store. */
  readonly storedTokens: number
  /** Seconds from arrival to the first step that computed any of the prompt, and from there to its last; the second is 0 where the request ended before. */
  readonly queueSeconds: number
  readonly prefillSeconds: number
  /** One list per token of the prompt, the first of which is empty; null where none were asked for. */
  readonly promptLogprobs: readonly (readonly TokenCandidate[])[] | null
}

export interface EngineEnd {
  readonly kind: 'end'
  readonly id: string
  readonly reason: 'stop' | 'length' | 'abort' | 'error'
  /** The stop token, which stays part of the answer; null for the end token of the model. */
  readonly stopId: number | null
  /** Rows of prompt and completion but the last sampled token, from the row that was asked for. */
  readonly routedExperts: OpaquePayload | null
  /** By token, layer and key, as i32; -1 where fewer keys were chosen. */
  readonly indexChoices: { readonly data: Int32Array; readonly shape: readonly number[] } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** Events of one request, in this order: `prompt` once, `tokens` any number of times, `end` once and last. */
export type EngineEvent = EnginePrompt | EngineTokens | EngineEnd

export interface EngineInfo {
  readonly vocabSize: number
  readonly maxModelLen: number
  readonly blockSize: number
  readonly blocks: number
  readonly profile: string
  readonly kvFormat: string
  /** End tokens of the model. */
  readonly endIds: readonly number[]
  /** null for a model without experts. */
  readonly routedLayout: RoutedLayout | null
  readonly parameters: number
}

/** Counters count from the start of the engine. */
export interface EngineStats {
  readonly version: PolicyVersion
  readonly isPaused: boolean
  readonly running: number
  readonly waiting: number
  /** Blocks that a running request holds, of `blocks`. */
  readonly usedBlocks: number
  /** Blocks whose content is kept for a later request. */
  readonly cachedBlocks: number
  readonly steps: number
  readonly promptTokens: number
  readonly generatedTokens: number
  /** Prompt tokens that were looked up, and found, in the prefix cache; in the store. */
  readonly prefixQueries: number
  readonly prefixHits: number
  readonly storeQueries: number
  readonly storeHits: number
  readonly preemptions: number
  readonly finished: Readonly<Record<EngineEnd['reason'], number>>
  /** Processor time of the scheduler without the model, and of everything. */
  readonly schedulerSeconds: number
  readonly stepSeconds: number
  /** Steps by their tokens (of prompts that were computed, and sampled): of at most each of `iterationBounds`, then of more. And the tokens of all. */
  readonly iterations: { readonly counts: readonly number[]; readonly tokens: number }
  /** Milliseconds since the engine last finished a step or had nothing to do. */
  readonly idleMs: number
  /** Oldest version whose KV a request was served, since the last look; null where none was. */
  readonly oldestVersionServed: PolicyVersion | null
}

/** What an exchange of weights cost those who wait for tokens. */
export interface WeightExchange {
  /** In which no step ran: since the end of the step before, or since the call where nothing ran. */
  readonly pausedSeconds: number
  /** Of the last step before it, to compare with; 0 where there was none. */
  readonly stepSeconds: number
}

export type PauseMode = 'keep' | 'wait' | 'abort'

/** The engine as the main thread sees it; the model runs in a thread of its own. */
export interface Engine {
  readonly info: EngineInfo
  /**
   * Begins a request. `onEvent` is called on the main thread, never during this call. Throws `REQUEST_INVALID` for what the engine cannot serve: an
   * empty or over-long prompt, an unknown token.
   */
  submit(request: EngineRequest, onEvent: (event: EngineEvent) => void): void
  /** Ends requests with `abort`; unknown ids are none of its business. */
  abort(ids: readonly string[]): void
  /** Resolves when no step runs any more: `keep` holds requests, `wait` lets them finish, `abort` ends them. Requests that arrive are held. */
  pause(mode: PauseMode): Promise<void>
  resume(): Promise<void>
  /**
   * Reads and checks a version beside the one that serves; repeated, it resolves to the same. The version that serves is untouched by a failure. `stamp` tells two
   * contents of one path apart: with another one, it is read again.
   */
  prepareWeights(update: { readonly version: PolicyVersion; readonly path: string; readonly stamp?: string }): Promise<void>
  /** Serves the prepared version from the next step on. Needs a pause. `WEIGHTS_NOT_PREPARED` for another version than the prepared one. */
  flipWeights(version: PolicyVersion): Promise<void>
  /**
   * Pause, flip and resume between two steps, as one: no step waits for anybody outside. Resolves when the next step begins. An engine that was paused runs again. Fails like `flipWeights`, and then changes nothing.
   */
  exchangeWeights(version: PolicyVersion): Promise<WeightExchange>
  /** Frees the version that served before. */
  finishWeights(version: PolicyVersion): Promise<void>
  /** SHA-256 of every tensor of the version that serves, by name. */
  weightChecksums(): Promise<Readonly<Record<string, string>>>
  /** Forgets the KV that no running request holds. */
  resetPrefixCache(options: { readonly isExternal: boolean }): Promise<void>
  stats(): EngineStats
  /** Rejects or resolves when the engine's thread has ended by itself. */
  readonly ended: Promise<void>
  dispose(): Promise<void>
}
