/** What the training thread tells the main thread. Plain data. */
export type SftEvent =
  | {
      readonly kind: 'started'
      /** Optimiser steps that are behind the weights. */
      readonly step: number
      readonly maxSteps: number | null
      readonly parameters: number
      readonly trainable: number
      /** Rows of a pass over the data. */
      readonly rows: number
    }
  | {
      readonly kind: 'step'
      /** Number of this step, from 1: the steps behind the weights when it was done. */
      readonly step: number
      readonly loss: number
      readonly tokens: number
      readonly gradientNorm: number
      readonly learningRate: number
      readonly seconds: number
      /** Most memory that the process has had so far. */
      readonly peakBytes: number
      readonly metrics: Readonly<Record<string, number>>
    }
  | { readonly kind: 'skipped'; readonly step: number; readonly reason: string; readonly samples: readonly string[]; readonly path: string }
  | { readonly kind: 'validated'; readonly step: number; readonly loss: number; readonly tokens: number; readonly seconds: number }
  | { readonly kind: 'saved'; readonly step: number; readonly path: string; readonly seconds: number }
  | { readonly kind: 'ended'; readonly step: number; readonly isInterrupted: boolean }

/** Takes events in order. */
export type SftListener = (event: SftEvent) => void
