import type { OpaquePayload, Turn } from '@trilithon/core'

/** The rows of a turn: those of tokens `start` to `start + rows - 1` of its prompt and completion. null where the engine reported none. */
export interface TurnRows {
  /** Tokens of the prompt and the completion. */
  readonly tokens: number
  readonly payload: OpaquePayload | null
  readonly start: number
  /** Rows of tokens before `start`, which another branch of the episode computed; they may cover fewer tokens. */
  readonly before: readonly OpaquePayload[]
}

const rowCount = ({ shape }: OpaquePayload): number => shape[0] ?? 0

const rowBytes = (payload: OpaquePayload): number => (rowCount(payload) === 0 ? 0 : payload.data.length / rowCount(payload))

/** Rows `from` to `to` of a payload, by reference. */
function cut(payload: OpaquePayload, from: number, to: number): OpaquePayload {
  const bytes = rowBytes(payload)
  const [, ...rest] = payload.shape
  return { data: payload.data.subarray(from * bytes, to * bytes), shape: [Math.max(0, to - from), ...rest], dtype: payload.dtype }
}

/**
 * An engine reports the rows of all tokens but the last, or only those behind a prefix that an earlier turn covers. Where that was a turn of another branch
 * with the same tokens, its rows are found among `samples`.
 */
export function rowsOf(turn: Turn, samples: readonly { readonly turns: readonly Turn[]; readonly rows: readonly TurnRows[] }[]): TurnRows {
  const tokens = turn.promptIds.length + turn.completionIds.length
  const payload = turn.routedExperts ?? null
  if (payload === null) return { tokens, payload, start: 0, before: [] }
  const start = Math.max(0, tokens - 1 - rowCount(payload))
  const before = start === 0 ? [] : findBefore(turn, start, samples)
  return { tokens, payload, start, before }
}

function findBefore(
  turn: Turn,
  start: number,
  samples: readonly { readonly turns: readonly Turn[]; readonly rows: readonly TurnRows[] }[],
): readonly OpaquePayload[] {
  for (const { turns, rows } of samples)
    for (const [index, earlier] of turns.entries()) {
      const shared = Math.min(start, earlier.promptIds.length + earlier.completionIds.length - 1)
      if (shared < start || !isPrefix(turn.promptIds, earlier, start)) continue
      const parts = assemble(rows.slice(0, index + 1))
      if (parts !== undefined) return takeRows(parts, start)
    }
  return []
}

function isPrefix(prompt: Uint32Array, { promptIds, completionIds }: Turn, length: number): boolean {
  for (let token = 0; token < length; token++) {
    const other = token < promptIds.length ? promptIds[token] : completionIds[token - promptIds.length]
    if (prompt[token] !== other) return false
  }
  return true
}

/** The first `count` rows of a list of parts. */
function takeRows(parts: readonly OpaquePayload[], count: number): OpaquePayload[] {
  const taken: OpaquePayload[] = []
  let left = count
  for (const part of parts) {
    if (left <= 0) break
    taken.push(rowCount(part) <= left ? part : cut(part, 0, left))
    left -= rowCount(part)
  }
  return taken
}

/** Parts that cover all tokens of the last turn but one, each row once; undefined where a turn has none or rows of another kind. */
function assemble(turns: readonly TurnRows[]): OpaquePayload[] | undefined {
  const parts: OpaquePayload[] = []
  let covered = 0
  for (const { payload, start, before, tokens } of turns) {
    if (payload === null) return undefined
    if (covered < start) {
      const known = before.reduce((sum, part) => sum + rowCount(part), 0)
      // Nobody knows these rows; the trainer chooses experts itself where a row is missing.
      if (known >= start) parts.splice(0, parts.length, ...takeRows(before, start))
      else parts.push(missing(payload, start - covered))
      covered = start
    }
    const own = Math.min(rowCount(payload), tokens - 1 - start)
    if (start + own > covered) parts.push(covered === start && own === rowCount(payload) ? payload : cut(payload, covered - start, own))
    covered = Math.max(covered, start + own)
  }
  const [first] = parts
  if (first === undefined) return undefined
  const isAlike = (part: OpaquePayload) => part.dtype === first.dtype && String(part.shape.slice(1)) === String(first.shape.slice(1))
  return parts.every(isAlike) ? parts : undefined
}

/** Rows with all bits set, of the kind of another payload. */
function missing(payload: OpaquePayload, rows: number): OpaquePayload {
  const [, ...rest] = payload.shape
  return { data: new Uint8Array(rows * rowBytes(payload)).fill(0xff), shape: [rows, ...rest], dtype: payload.dtype }
}

/** The rows of a merged sample, in one payload. The bytes of a single turn are carried by reference, those of several are copied together once. */
export function joinExperts(turns: readonly TurnRows[]): OpaquePayload | undefined {
  const parts = assemble(turns)
  const [first] = parts ?? []
  if (parts === undefined || first === undefined) return undefined
  if (parts.length === 1) return first
  const data = new Uint8Array(parts.reduce((sum, part) => sum + part.data.length, 0))
  let place = 0
  for (const part of parts) {
    data.set(part.data, place)
    place += part.data.length
  }
  return { data, shape: [parts.reduce((sum, part) => sum + rowCount(part), 0), ...first.shape.slice(1)], dtype: first.dtype }
}
