import {
  appendToPages,
  choosePagedKeys,
  fromArray,
  type PagedSequences,
  pagedAttention,
  pagedLatentAttention,
  type Tensor,
} from '@trilithon/tensor'
import { refuse } from '../refuse.ts'
import { type ContextBackend, indexScale } from './context-backend.ts'
import type { KVComponent, KVPages } from './kv-pages.ts'

/** New tokens of one sequence of an engine, and where its keys are. */
export interface PagedSequence {
  /** Tokens of this forward: the last ones of the sequence. */
  readonly newTokens: number
  /** Tokens before them, whose keys are in the pages already. */
  readonly cachedTokens: number
  /** Pages of the sequence in order, enough for all its tokens. */
  readonly pages: readonly number[]
}

/**
 * The back-end of the engine: rows of several sequences, whose keys are written to pages and read from there. A prompt may come at once or in pieces, a
 * token may come alone: its bits are those of the packed forward.
 *
 * Not differentiable. Its tensors belong to the scope in which it is made.
 */
export function createPagedContext(pages: KVPages, sequences: readonly PagedSequence[]): ContextBackend {
  const { positions, rows } = describeRows(pages, sequences)
  return pagedContextOf(pages, {
    positions: fromArray('i32', [positions.length], positions),
    lastPosition: positions.reduce((last, position) => Math.max(last, position), 0),
    sequences: rows,
  })
}

/** Rows of a forward over pages, described already. */
export interface PagedRows {
  /** i32 [rows]. */
  readonly positions: Tensor
  readonly lastPosition: number
  readonly sequences: PagedSequences
}

/** The same for an engine that keeps its own tables: nothing is checked but what the ops check. */
export function pagedContextOf(pages: KVPages, { positions, lastPosition, sequences: rows }: PagedRows): ContextBackend {
  const append = (name: KVComponent['name'], layer: number, values: Tensor): Tensor => {
    const view = pages.of(name, layer)
    appendToPages(values, view, rows)
    return view
  }
  return {
    rows: positions.dim(0),
    positions,
    lastPosition,
    attend: (layer, q, k, v, scale) => pagedAttention(q, append('k', layer, k), append('v', layer, v), rows, scale),
    choose(layer, indexer, topK) {
      return choosePagedKeys({ ...indexer, k: append('index', layer, indexer.k) }, rows, topK, indexScale(indexer))
    },
    attendLatent(layer, q, keys, choice, scale, trained) {
      if (trained !== null) refuse('attendLatent', 'trained', 'no training of the indexer', 'pages of an engine')
      const own = { latent: append('latent', layer, keys.latent), rotary: append('rotary', layer, keys.rotary) }
      return { out: pagedLatentAttention(q, own, rows, choice, scale), indexLoss: null }
    },
  }
}

function describeRows(pages: KVPages, sequences: readonly PagedSequence[]): { positions: number[]; rows: PagedSequences } {
  const op = 'createPagedContext'
  if (sequences.length === 0) refuse(op, 'sequences', 'at least one sequence', 'none')
  const positions: number[] = []
  const starts = [0]
  const widest = Math.max(...sequences.map((sequence) => sequence.pages.length), 1)
  const table = new Int32Array(sequences.length * widest).fill(-1)
  const used = new Set<number>()
  for (const [index, { newTokens, cachedTokens, pages: own }] of sequences.entries()) {
    const at = `sequences[${index}]`
    for (const [name, value, least] of [
      ['newTokens', newTokens, 1],
      ['cachedTokens', cachedTokens, 0],
    ] as const)
      if (!Number.isSafeInteger(value) || value < least) refuse(op, `${at}.${name}`, `a whole number from ${least}`, String(value))
    const length = cachedTokens + newTokens
    if (own.length * pages.blockSize < length)
      refuse(op, `${at}.pages`, `pages for ${length} tokens of ${pages.blockSize} each`, `${own.length}`)
    for (const [slot, page] of own.entries()) {
      if (!Number.isInteger(page) || page < 0 || page >= pages.pages)
        refuse(op, `${at}.pages[${slot}]`, `a page from 0 to ${pages.pages - 1}`, String(page))
      table[index * widest + slot] = page
      // Pages behind the cached tokens are written to: two sequences may share only what none of them writes.
      if ((slot + 1) * pages.blockSize <= cachedTokens) continue
      if (used.has(page)) refuse(op, `${at}.pages[${slot}]`, 'a page that no other sequence writes to', String(page))
      used.add(page)
    }
    for (let token = 0; token < newTokens; token++) positions.push(cachedTokens + token)
    starts.push(positions.length)
  }
  const lengths = sequences.map(({ cachedTokens, newTokens }) => cachedTokens + newTokens)
  return {
    positions,
    rows: {
      queryStarts: fromArray('i32', [starts.length], starts),
      contextLengths: fromArray('i32', [lengths.length], lengths),
      blockTable: fromArray('i32', [sequences.length, widest], table),
    },
  }
}
