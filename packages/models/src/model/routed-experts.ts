import { type OpaquePayload, type RoutedLayout, TrilithonError } from '@trilithon/core'
import { fromArray, type Tensor, toArray } from '@trilithon/tensor'

const arrayOf = { uint8: Uint8Array, uint16: Uint16Array } as const

/** Experts of every row and MoE layer as one payload: rows × layers × top_k. `routes` has one tensor [rows, top_k] per MoE layer. */
export function joinRoutes(layout: RoutedLayout, routes: readonly Tensor[], rows: number): OpaquePayload {
  const { layers, topK, dtype } = layout
  const joined = new arrayOf[dtype](rows * layers * topK)
  for (const [layer, tensor] of routes.entries()) {
    const values = toArray(tensor) as Uint8Array | Uint16Array
    for (let row = 0; row < rows; row++) joined.set(values.subarray(row * topK, (row + 1) * topK), (row * layers + layer) * topK)
  }
  return { data: new Uint8Array(joined.buffer), shape: [rows, layers, topK], dtype }
}

/** The other way round: one tensor per MoE layer. Refuses a payload of another layout or another number of rows. */
export function splitRoutes(layout: RoutedLayout, payload: OpaquePayload, rows: number): readonly Tensor[] {
  const { layers, topK, dtype } = layout
  const wanted = [rows, layers, topK]
  const bytes = rows * layout.rowBytes
  if (payload.dtype !== dtype || payload.shape.join() !== wanted.join() || payload.data.length !== bytes)
    throw new TrilithonError(
      'PAYLOAD_INVALID',
      `forward: routes: expected ${dtype} [${wanted.join(', ')}], ${bytes} bytes; given ${payload.dtype} [${payload.shape.join(', ')}], ${payload.data.length} bytes`,
      { path: 'forward.routes', hint: 'Take the routed experts of the same rows and the same model.' },
    )
  // The bytes may begin anywhere in a buffer of somebody else.
  const values = new arrayOf[dtype](payload.data.slice().buffer)
  return Array.from({ length: layers }, (_, layer) => {
    const part = new arrayOf[dtype](rows * topK)
    for (let row = 0; row < rows; row++) {
      const from = (row * layers + layer) * topK
      part.set(values.subarray(from, from + topK), row * topK)
    }
    return fromArray(dtype === 'uint8' ? 'u8' : 'u16', [rows, topK], part)
  })
}
