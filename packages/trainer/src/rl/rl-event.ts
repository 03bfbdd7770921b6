import type { Sample } from '@trilithon/core'

/** A batch as it came: batch N trains version N. */
export interface RlBatch {
  readonly step: number
  readonly samples: readonly Sample[]
}

/** What the training thread tells the main thread. Plain data. */
export type RlEvent =
  | {
      readonly kind: 'started'
      /** Version of the weights: the batch of this number comes next. */
      readonly step: number
      readonly parameters: number
      readonly trainable: number
    }
  /** The batch of this number is wanted. */
  | { readonly kind: 'waiting'; readonly step: number }
  | { readonly kind: 'training'; readonly step: number }
  | {
      readonly kind: 'step'
      /** Number of the batch. */
      readonly step: number
      readonly tokens: number
      readonly seconds: number
      /** Most memory that the process has had so far. */
      readonly peakBytes: number
      /** Under prime-rl's names, where it has one. */
      readonly metrics: Readonly<Record<string, number>>
    }
  | { readonly kind: 'skipped'; readonly step: number; readonly reason: string; readonly samples: readonly string[]; readonly path: string }
  | { readonly kind: 'published'; readonly version: number; readonly seconds: number }
  /** A checkpoint is being written, of these many steps. */
  | { readonly kind: 'saving'; readonly step: number }
  | { readonly kind: 'saved'; readonly step: number; readonly path: string; readonly seconds: number }
  | { readonly kind: 'ended'; readonly step: number; readonly isInterrupted: boolean }

/** Takes events in order. */
export type RlListener = (event: RlEvent) => void
