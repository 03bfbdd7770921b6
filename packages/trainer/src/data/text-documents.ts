import { TrilithonError } from '@trilithon/core'
import { maskByRole, type Renderer, type RoleMask } from '@trilithon/renderers'
import { parseConversation } from './conversation.ts'
import type { Document } from './document.ts'
import type { DocumentSource } from './document-source.ts'
import { type RowSource, rowInvalid } from './row-source.ts'
import { shuffledOrder } from './shuffle.ts'

export interface TextDocumentsOptions {
  readonly rows: RowSource
  readonly renderer: Renderer
  /** Appended to an answer that ends the row without a token that ends its turn. */
  readonly eosId: number | undefined
  readonly seqLen: number
  readonly lossMask: RoleMask
  readonly shuffle: boolean
  readonly seed: number
}

/** Rows that are looked at before the run begins, at most. */
const checkedRows = 1000
/** Problems that are listed, at most. */
const listedProblems = 20

/**
 * Documents of a data set. The first thousand rows are checked here, and all that is wrong with them is reported at once; a later row is refused when its
 * turn comes. A document longer than `seqLen` is cut to it. Throws `DATA_INVALID`.
 */
export function createTextDocuments(options: TextDocumentsOptions): DocumentSource {
  const { rows, shuffle, seed } = options
  let order = { epoch: -1, rows: new Uint32Array() as Uint32Array }
  const rowAt = (epoch: number, row: number) => {
    if (!shuffle) return row
    if (order.epoch !== epoch) order = { epoch, rows: shuffledOrder(rows.count, seed, epoch) }
    return order.rows[row] ?? 0
  }
  refuseRows(options)
  return {
    rows: rows.count,
    read: ({ epoch, row }) => toDocument(rowAt(epoch, row), options),
    close: () => rows.close(),
  }
}

function toDocument(row: number, { rows, renderer, eosId, seqLen, lossMask }: TextDocumentsOptions): Document | undefined {
  const place = rows.place(row)
  const json = rows.read(row)
  try {
    const { messages, tools } = parseConversation(json)
    const rendering = renderer.render(messages, { tools })
    let ids = rendering.ids
    let mask = maskByRole(rendering, lossMask)
    const last = ids.findLastIndex((_, token) => rendering.sampled[token] === 1)
    const isEnded = last !== -1 && renderer.stopIds.includes(ids[last] ?? -1)
    if (messages.at(-1)?.role === 'assistant' && !isEnded && eosId !== undefined) {
      ids = Uint32Array.of(...ids, eosId)
      mask = Uint8Array.of(...mask, Number(lossMask.assistant))
    }
    const cut = Math.max(0, ids.length - seqLen)
    // Nothing stands before the first token that could predict it.
    mask[0] = 0
    const document = { ids: ids.slice(0, seqLen), mask: mask.slice(0, seqLen), where: `${place.file}:${place.line}`, cut }
    return document.mask.includes(1) ? document : undefined
  } catch (cause) {
    if (!TrilithonError.is(cause)) throw cause
    throw rowInvalid(place, cause.message, cause)
  }
}

function refuseRows(options: TextDocumentsOptions): void {
  const problems: TrilithonError[] = []
  let trainable = 0
  const count = Math.min(options.rows.count, checkedRows)
  for (let row = 0; row < count && problems.length < listedProblems; row++) {
    try {
      if (toDocument(row, options) !== undefined) trainable++
    } catch (error) {
      if (!TrilithonError.is(error, 'DATA_INVALID')) throw error
      problems.push(error)
    }
  }
  const [first] = problems
  if (first !== undefined) {
    if (problems.length === 1) throw first
    const more = problems.length === listedProblems ? ' at least' : ''
    throw new TrilithonError('DATA_INVALID', `${problems.length} rows${more} cannot be trained on`, { path: 'data.name', problems })
  }
  if (trainable === 0) {
    const roles = Object.entries(options.lossMask).filter(([, isTrained]) => isTrained)
    throw new TrilithonError(
      'DATA_INVALID',
      `none of the first ${count} rows has a token to train within ${options.seqLen} tokens, of the roles ${roles.map(([role]) => role).join(', ') || '(none)'}`,
      { path: 'data.loss_mask', hint: 'Raise data.seq_len, or train roles that the rows have.' },
    )
  }
}
