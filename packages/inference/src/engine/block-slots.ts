import type { KVPages } from '@trilithon/models'
import { bytesPerElement, fromArray, fromShared, gatherBlocks, keep, scatterBlocks, scope, type Tensor, viewOf } from '@trilithon/tensor'
import type { SlotLayout } from './engine-messages.ts'

/** The engine's side of the slots through which blocks leave and come: whole pages, bit for bit. */
export class BlockSlots {
  readonly #pages: KVPages
  readonly #tensor: Tensor
  readonly #slotBytes: number
  /** Slots for blocks that leave, as far as they are free. */
  readonly #free: number[]
  readonly #leaving: number

  constructor(pages: KVPages, { buffer, slotBytes, leaving, coming }: SlotLayout) {
    this.#pages = pages
    this.#slotBytes = slotBytes
    this.#leaving = leaving
    this.#tensor = keep(fromShared('u8', [leaving + coming, slotBytes], new Uint8Array(buffer)))
    this.#free = Array.from({ length: leaving }, (_, index) => leaving - 1 - index)
  }

  /** A slot for a block that leaves; undefined where all are on their way. */
  take(): number | undefined {
    return this.#free.pop()
  }

  giveBack(slot: number): void {
    this.#free.push(slot)
  }

  /** Slots that are on their way. */
  get inFlight(): number {
    return this.#leaving - this.#free.length
  }

  gather(page: number, slot: number): void {
    this.#move(page, slot, (tensor, ids, slots, offset) => gatherBlocks(tensor, ids, slots, offset))
  }

  scatter(slot: number, page: number): void {
    this.#move(page, slot, (tensor, ids, slots, offset) => scatterBlocks(slots, ids, tensor, offset))
  }

  dispose(): void {
    this.#tensor.dispose()
  }

  #move(page: number, slot: number, copy: (tensor: Tensor, ids: Tensor, slots: Tensor, offset: number) => void): void {
    scope(() => {
      const ids = fromArray('i32', [1], [page])
      const own = viewOf(this.#tensor, [1, this.#slotBytes], [this.#slotBytes, 1], slot * this.#slotBytes)
      let offset = 0
      for (const tensor of this.#pages.tensors) {
        copy(tensor, ids, own, offset)
        offset += tensor.dim(0) * tensor.dim(2) * bytesPerElement[tensor.dtype]
      }
    })
  }
}
