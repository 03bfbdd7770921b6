/**
 * Bytes that are produced by one role and understood by another; whoever is between carries them by reference and never parses them.
 * Routed experts travel so (R3).
 */
export interface OpaquePayload {
  readonly data: Uint8Array
  /** rows × MoE layers × top_k for routed experts, outermost first. */
  readonly shape: readonly number[]
  readonly dtype: 'uint8' | 'uint16'
}

/** What one row of routed experts looks like, fixed by the model and never by a payload. */
export interface RoutedLayout {
  readonly dtype: 'uint8' | 'uint16'
  readonly layers: number
  readonly topK: number
  /** Bytes of one token's row: layers × topK × element size. */
  readonly rowBytes: number
}

/** Counts that fix the layout of routed experts. */
export interface RoutingShape {
  readonly experts: number
  readonly layers: number
  readonly topK: number
}

/**
 * uint8 where the all-ones pattern that marks a missing row cannot be a real row: up to 255 experts, or 256 when top_k >= 2 (the ids of
 * one token are distinct, so two of them cannot both be 255). Otherwise uint16.
 */
export function routedLayout({ experts, layers, topK }: RoutingShape): RoutedLayout {
  const dtype = experts <= 255 || (experts === 256 && topK >= 2) ? 'uint8' : 'uint16'
  return { dtype, layers, topK, rowBytes: layers * topK * (dtype === 'uint8' ? 1 : 2) }
}

/** `rows` missing rows: all bits set, never expert 0. */
export function missingRows(layout: RoutedLayout, rows: number): OpaquePayload {
  return { data: new Uint8Array(rows * layout.rowBytes).fill(0xff), shape: [rows, layout.layers, layout.topK], dtype: layout.dtype }
}
