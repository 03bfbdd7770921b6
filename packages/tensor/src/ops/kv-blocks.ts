/** Moves KV blocks without reading them. For the engine: nothing here is differentiable. */
import { kvBlocksAppend, kvBlocksGather, kvBlocksScatter } from '@trilithon/native'
import { refuseRecording } from '../tape.ts'
import type { Tensor } from '../tensor.ts'
import { type PagedSequences, pagedArguments } from './sequences.ts'

/** Writes rows of new tokens, [queries, …], to their places in `pages`, [pages, blockSize, …]: those at which paged attention reads them. */
export function appendToPages(rows: Tensor, pages: Tensor, sequences: PagedSequences): void {
  refuseRecording('appendToPages', 'rows', rows)
  kvBlocksAppend({ rows: rows.handle, ...pagedArguments(sequences), pages: pages.handle })
  pages.writes++
}

/**
 * Copies page `ids[i]` (i32) of every part of `pages`, [parts, pages, width], into slot i of `slots`, u8 [blocks, slotBytes], parts one after another
 * from byte `offset` of the slot.
 */
export function gatherBlocks(pages: Tensor, ids: Tensor, slots: Tensor, offset: number): void {
  kvBlocksGather({ pages: pages.handle, ids: ids.handle, slots: slots.handle, offset })
  slots.writes++
}

/** Copies slots into pages: the inverse of `gatherBlocks`. */
export function scatterBlocks(slots: Tensor, ids: Tensor, pages: Tensor, offset: number): void {
  kvBlocksScatter({ slots: slots.handle, ids: ids.handle, pages: pages.handle, offset })
  pages.writes++
}
