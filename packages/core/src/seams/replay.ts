import type { OpaquePayload, RoutedLayout, RoutingShape } from '../data/opaque-payload.ts'
import { type Disposable, defineSeam } from '../seam.ts'

/**
 * Trains through the experts that the engine chose (R3). The payload passes every role as bytes; this seam agrees on its layout, checks what
 * arrives and joins what belongs together, and native kernels record and apply it. One plugin. Thread: worker.
 *
 * Contract:
 * - Y1 `start` either resolves to the layout for the model's counts, or rejects with `REPLAY_REFUSED` and a hint what to install or change.
 * - Y2 The layout is that of invariant 6 (`routedLayout`), whatever the plugin.
 * - Y3 `accept` rejects with `PAYLOAD_INVALID` a payload of another dtype or shape, of another number of rows than `rows`, or with the id of
 *   an expert that the model does not have; a missing row (all bits set) is accepted.
 * - Y4 `join` gives the rows of its parts in order, and changes no part; parts must share one layout, else `PAYLOAD_INVALID`.
 * - Y5 Before `start` has resolved, `accept` and `join` throw `REPLAY_REFUSED`.
 */
export interface Replay extends Disposable {
  start(shape: RoutingShape): Promise<RoutedLayout>
  accept(payload: OpaquePayload, rows: number): void
  join(parts: readonly OpaquePayload[]): OpaquePayload
}

export const Replay = defineSeam<Replay>({
  id: 'replay',
  version: 1,
  cardinality: 'one',
  thread: 'worker',
  runsIn: ['trainer', 'inference', 'orchestrator'],
})
