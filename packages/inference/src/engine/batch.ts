import type { PagedRows } from '@trilithon/models'
import { fromArray } from '@trilithon/tensor'
import type { Sequence } from './sequence.ts'

/** The rows of one step: some new tokens of some sequences. Its arrays are used again by the next. */
export class Batch {
  readonly sequences: Sequence[] = []
  /** New tokens by sequence. */
  readonly counts: number[] = []
  rows = 0
  #ids = new Int32Array(256)
  #positions = new Int32Array(256)
  #starts = new Int32Array(65)
  #lengths = new Int32Array(64)
  #table = new Int32Array(1024)

  clear(): void {
    this.sequences.length = 0
    this.counts.length = 0
    this.rows = 0
  }

  add(sequence: Sequence, count: number): void {
    this.sequences.push(sequence)
    this.counts.push(count)
    this.rows += count
  }

  remove(sequence: Sequence): void {
    const place = this.sequences.indexOf(sequence)
    if (place < 0) return
    this.rows -= this.counts[place] as number
    this.sequences.splice(place, 1)
    this.counts.splice(place, 1)
  }

  /** Token ids of the rows. Valid until the next call. */
  ids(): Int32Array {
    if (this.#ids.length < this.rows) this.#ids = new Int32Array(this.rows * 2)
    const ids = this.#ids
    let row = 0
    for (let index = 0; index < this.sequences.length; index++) {
      const { tokens, computed } = this.sequences[index] as Sequence
      const count = this.counts[index] as number
      for (let token = 0; token < count; token++) ids[row++] = tokens[computed + token] as number
    }
    return ids.subarray(0, this.rows)
  }

  /** Where the rows stand and where their keys are. Its tensors belong to the scope of the caller. */
  describe(): PagedRows {
    const count = this.sequences.length
    if (this.#positions.length < this.rows) this.#positions = new Int32Array(this.rows * 2)
    if (this.#lengths.length < count) {
      this.#lengths = new Int32Array(count * 2)
      this.#starts = new Int32Array(count * 2 + 1)
    }
    let width = 1
    for (const { pageCount } of this.sequences) if (pageCount > width) width = pageCount
    if (this.#table.length < count * width) this.#table = new Int32Array(count * width * 2)
    const [positions, starts, lengths, table] = [this.#positions, this.#starts, this.#lengths, this.#table]
    let row = 0
    let lastPosition = 0
    for (let index = 0; index < count; index++) {
      const sequence = this.sequences[index] as Sequence
      const { computed, pageCount } = sequence
      const added = this.counts[index] as number
      starts[index] = row
      lengths[index] = computed + added
      sequence.row = row + added - 1
      for (let token = 0; token < added; token++) positions[row++] = computed + token
      if (computed + added - 1 > lastPosition) lastPosition = computed + added - 1
      // Entries behind the context are not read.
      copyInto(table, index * width, sequence.pages, pageCount)
    }
    starts[count] = row
    return {
      positions: fromArray('i32', [row], positions.subarray(0, row)),
      lastPosition,
      sequences: {
        queryStarts: fromArray('i32', [count + 1], starts.subarray(0, count + 1)),
        contextLengths: fromArray('i32', [count], lengths.subarray(0, count)),
        blockTable: fromArray('i32', [count, width], table.subarray(0, count * width)),
      },
    }
  }
}

function copyInto(target: Int32Array, at: number, source: Int32Array, count: number): void {
  // A call costs more than a few elements do.
  if (count > 32) target.set(source.subarray(0, count), at)
  else for (let index = 0; index < count; index++) target[at + index] = source[index] as number
}
