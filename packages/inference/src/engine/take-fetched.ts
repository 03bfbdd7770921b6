import type { BlockManager, BlockName } from './block-manager.ts'
import type { BlockSlots } from './block-slots.ts'
import type { FetchedBlocks } from './engine-messages.ts'
import type { Sequence } from './sequence.ts'
import type { ExpertRows } from './token-records.ts'

interface Places {
  readonly blocks: BlockManager
  readonly slots: BlockSlots
  readonly experts: ExpertRows | null
}

/**
 * Puts blocks that a waiting request had asked for into pages, where its admission finds them like any cached ones. Whatever does not fit, or comes
 * without the rows of experts that it should have, is left out and computed. Returns the number of blocks that are there now.
 */
export function takeFetched(sequence: Sequence, { blocks: fetched, isPartial }: FetchedBlocks, { blocks, slots, experts }: Places): number {
  const base = sequence.askedBlocks
  const held: number[] = []
  // What comes must not push out what is there already.
  for (let block = 0; block < base; block++) {
    const page = blocks.find((sequence.names[block] as BlockName).text)
    if (page === undefined) break
    blocks.acquire(page)
    held.push(page)
  }
  let found = 0
  for (const { slot, versions, experts: rows } of fetched) {
    const name = sequence.names[base + found]
    if (name === undefined) break
    const there = blocks.find(name.text)
    if (there !== undefined) {
      blocks.acquire(there)
      held.push(there)
    } else {
      const page = blocks.allocate()
      if (page < 0) break
      if (experts !== null && (rows === null || !experts.setPage(page, rows))) {
        blocks.release(page)
        break
      }
      slots.scatter(slot, page)
      blocks.setVersions(page, versions)
      blocks.register(page, name)
      held.push(page)
    }
    found++
  }
  while (held.length > 0) blocks.release(held.pop() as number)
  if (found > 0) {
    if (sequence.storedTo !== base) sequence.storedFrom = base
    sequence.storedTo = base + found
  }
  // Another answer may follow only where all of this one could be used.
  sequence.askedBlocks = isPartial && found > 0 && found === fetched.length ? base + found : Number.POSITIVE_INFINITY
  sequence.state = 'waiting'
  return found
}
