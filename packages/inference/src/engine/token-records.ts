import type { OpaquePayload, RoutedLayout } from '@trilithon/core'
import type { ForwardResult } from '@trilithon/models'
import { toArray } from '@trilithon/tensor'
import type { Batch } from './batch.ts'
import type { Sequence } from './sequence.ts'

/**
 * Routed experts of the tokens whose keys are in the pages. A row lies at the place of its token's keys, so it belongs to them whatever happens to the
 * page: it is shared, leaves and comes with it, and is overwritten with it.
 */
export class ExpertRows {
  readonly layout: RoutedLayout
  readonly #rows: Uint8Array
  readonly #blockSize: number

  constructor(layout: RoutedLayout, pages: number, blockSize: number) {
    this.layout = layout
    this.#blockSize = blockSize
    this.#rows = new Uint8Array(pages * blockSize * layout.rowBytes)
  }

  /** Takes the rows of a step. */
  write({ sequences, counts }: Batch, { data }: OpaquePayload): void {
    const { rowBytes } = this.layout
    let from = 0
    for (let index = 0; index < sequences.length; index++) {
      const { computed, pages } = sequences[index] as Sequence
      const end = computed + (counts[index] as number)
      for (let token = computed; token < end; ) {
        const inPage = token % this.#blockSize
        const count = Math.min(end - token, this.#blockSize - inPage)
        const at = ((pages[Math.floor(token / this.#blockSize)] as number) * this.#blockSize + inPage) * rowBytes
        copyBytes(this.#rows, at, data, from, count * rowBytes)
        from += count * rowBytes
        token += count
      }
    }
  }

  /** A copy of the rows of a page. */
  ofPage(page: number): OpaquePayload {
    const bytes = this.#blockSize * this.layout.rowBytes
    return this.#payload(this.#rows.slice(page * bytes, (page + 1) * bytes), this.#blockSize)
  }

  /** Takes the rows of a block that came; false where they are not of this layout. */
  setPage(page: number, { data, shape, dtype }: OpaquePayload): boolean {
    const { layers, topK, dtype: wanted, rowBytes } = this.layout
    const bytes = this.#blockSize * rowBytes
    if (dtype !== wanted || shape.join() !== [this.#blockSize, layers, topK].join() || data.length !== bytes) return false
    this.#rows.set(data, page * bytes)
    return true
  }

  /** Keeps the rows of a sequence that is about to lose its pages. */
  keep(sequence: Sequence): void {
    const { computed, keptExperts } = sequence
    if (sequence.request.routedExpertsFrom === null || computed === 0) return
    sequence.keptExperts = this.ofSequence(sequence, 0, Math.max(computed, keptExperts?.shape[0] ?? 0))
  }

  /** Rows of the tokens [from, to) of a sequence: from its pages, behind them as it had them before; those that were never computed are marked as missing. */
  ofSequence({ pages, computed, keptExperts }: Sequence, from: number, to: number): OpaquePayload {
    const { rowBytes } = this.layout
    const data = new Uint8Array(Math.max(0, to - from) * rowBytes).fill(0xff)
    if (keptExperts !== null) data.set(keptExperts.data.subarray(from * rowBytes, Math.max(from, to) * rowBytes))
    const end = Math.min(to, computed)
    for (let token = from; token < end; ) {
      const inPage = token % this.#blockSize
      const count = Math.min(end - token, this.#blockSize - inPage)
      const at = ((pages[Math.floor(token / this.#blockSize)] as number) * this.#blockSize + inPage) * rowBytes
      data.set(this.#rows.subarray(at, at + count * rowBytes), (token - from) * rowBytes)
      token += count
    }
    return this.#payload(data, Math.max(0, to - from))
  }

  #payload(data: Uint8Array, rows: number): OpaquePayload {
    return { data, shape: [rows, this.layout.layers, this.layout.topK], dtype: this.layout.dtype }
  }
}

function copyBytes(target: Uint8Array, at: number, source: Uint8Array, from: number, count: number): void {
  // A call costs more than a few bytes do.
  if (count > 48) target.set(source.subarray(from, from + count), at)
  else for (let index = 0; index < count; index++) target[at + index] = source[from + index] as number
}

/** Adds the keys that a step's indexers chose to the sequences that report them. */
export function recordChoices({ sequences, counts }: Batch, choices: NonNullable<ForwardResult['choices']>): void {
  const layers = [...choices.values()].map(({ indices, counts: kept }) => ({
    topK: indices.dim(1),
    indices: toArray(indices) as Int32Array,
    kept: toArray(kept) as Int32Array,
  }))
  const topK = layers[0]?.topK ?? 0
  let row = 0
  for (let index = 0; index < sequences.length; index++) {
    const sequence = sequences[index] as Sequence
    const count = counts[index] as number
    if (sequence.request.reportsIndexChoices) {
      if (sequence.computed === 0) sequence.choices = []
      const rows = new Int32Array(count * layers.length * topK).fill(-1)
      for (let token = 0; token < count; token++)
        for (const [layer, { indices, kept }] of layers.entries()) {
          const from = (row + token) * topK
          rows.set(indices.subarray(from, from + (kept[row + token] as number)), (token * layers.length + layer) * topK)
        }
      sequence.choices.push(rows)
    }
    row += count
  }
}

/** The choices of the first `rows` tokens of a sequence in one piece. */
export function joinChoices(
  { choices }: Sequence,
  rows: number,
  layers: number,
  topK: number,
): { data: Int32Array; shape: readonly number[] } {
  const data = new Int32Array(rows * layers * topK).fill(-1)
  let at = 0
  for (const piece of choices) {
    const part = piece.subarray(0, Math.min(piece.length, data.length - at))
    data.set(part, at)
    at += part.length
  }
  return { data, shape: [rows, layers, topK] }
}
