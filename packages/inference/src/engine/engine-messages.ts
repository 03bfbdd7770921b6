/** What crosses between the thread of the HTTP server and the thread of the model. */
import type { OpaquePayload, VersionRange } from '@trilithon/core'
import type { BlockName } from './block-manager.ts'
import type { EngineEnd, EngineInfo, EnginePrompt, EngineRequest, ImportedPrompt, PauseMode, TokenCandidate } from './engine.ts'

/** A request without the bytes of imported blocks, which come through slots like those of the store. */
export interface CoreRequest extends Omit<EngineRequest, 'imported'> {
  /** Names the request between the two threads. */
  readonly handle: number
  readonly imported: { readonly firstToken: ImportedPrompt['firstToken'] } | null
}

/** Words of one token in a report: handle, token, log-probability (f32), version, oldest version of the context. */
export const tokenWords = 5

/** Asks for blocks that follow each other; the answer is a `FetchedBlocks`. */
export interface BlockLookup {
  readonly handle: number
  readonly names: readonly BlockName[]
}

/** A block on its way out: its bytes are in the slot until the slot is given back. */
export interface EvictedBlock {
  readonly slot: number
  readonly name: BlockName
  readonly versions: VersionRange
  readonly experts: OpaquePayload | null
}

/** The first blocks of a lookup that were found, in order. Their slots are given back by `slots-read`. */
export interface FetchedBlocks {
  readonly handle: number
  readonly blocks: readonly { readonly slot: number; readonly versions: VersionRange; readonly experts: OpaquePayload | null }[]
  /** More of the lookup may be there: ask again. */
  readonly isPartial: boolean
}

/** What happened since the last report: at most one per step. */
export interface CoreReport {
  /** `tokenWords` per token. */
  readonly tokens: Uint32Array
  /** Of the tokens that have any, by index of the token. */
  readonly candidates: readonly { readonly index: number; readonly list: readonly TokenCandidate[] }[]
  readonly prompts: readonly (Omit<EnginePrompt, 'kind' | 'id'> & { readonly handle: number })[]
  readonly ends: readonly (Omit<EngineEnd, 'kind' | 'id'> & { readonly handle: number })[]
  readonly lookups: readonly BlockLookup[]
  readonly evictions: readonly EvictedBlock[]
  /** Slots whose content was read. */
  readonly slotsRead: readonly number[]
}

/** Calls that are answered. */
export interface EngineCalls {
  pause: { readonly mode: PauseMode }
  resume: null
  'prepare-weights': { readonly version: number; readonly path: string; readonly stamp: string }
  'flip-weights': { readonly version: number }
  'exchange-weights': { readonly version: number }
  'finish-weights': { readonly version: number }
  'weight-checksums': null
  'reset-prefix-cache': null
  dispose: null
}

export type EngineCall = { [Name in keyof EngineCalls]: { readonly name: Name; readonly argument: EngineCalls[Name] } }[keyof EngineCalls]

export type ToCore =
  | { readonly kind: 'submit'; readonly request: CoreRequest }
  | { readonly kind: 'abort'; readonly handles: readonly number[] }
  | { readonly kind: 'call'; readonly call: EngineCall; readonly number: number }
  | { readonly kind: 'fetched'; readonly fetched: FetchedBlocks }
  | { readonly kind: 'slots-written'; readonly slots: readonly number[] }

export type FromCore =
  | { readonly kind: 'started'; readonly info: EngineInfo; readonly shared: SharedMemory }
  | { readonly kind: 'report'; readonly report: CoreReport }
  | { readonly kind: 'answer'; readonly number: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly number: number; readonly error: unknown }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Memory of both threads. */
export interface SharedMemory {
  readonly stats: SharedArrayBuffer
  readonly slots: SlotLayout | null
}

/** Slots for blocks that leave, then slots for blocks that come. */
export interface SlotLayout {
  readonly buffer: SharedArrayBuffer
  readonly slotBytes: number
  readonly leaving: number
  readonly coming: number
}
