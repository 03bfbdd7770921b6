import type { Turn } from '@trilithon/core'

/** A turn on its way. Arrays are bytes, little endian; of a prompt that extends the turn before it only what is new travels. */
export interface TurnMessage {
  readonly event: 'turn'
  /** Index in the group; 0 for a single episode. */
  readonly episode: number
  readonly attempt: number
  /** Ids at the start of the prompt that are prompt and completion of the turn before it. */
  readonly prompt_start: number
  readonly prompt_ids: Uint8Array
  readonly completion_ids: Uint8Array
  readonly completion_logprobs: Uint8Array
  readonly versions: Uint8Array
  readonly context_versions_min: Uint8Array
  readonly temperature: number
  readonly finish_reason: Turn['finishReason']
  readonly routed_experts: { readonly data: Uint8Array; readonly shape: readonly number[]; readonly dtype: 'uint8' | 'uint16' } | null
}

export function encodeTurn(turn: Turn, before: Turn | undefined, episode: number, attempt: number): TurnMessage {
  const start = before !== undefined && extendsTurn(turn, before) ? before.promptIds.length + before.completionIds.length : 0
  return {
    event: 'turn',
    episode,
    attempt,
    prompt_start: start,
    prompt_ids: bytesOf(turn.promptIds.subarray(start)),
    completion_ids: bytesOf(turn.completionIds),
    completion_logprobs: bytesOf(turn.logprobs),
    versions: bytesOf(turn.versions),
    context_versions_min: bytesOf(turn.contextVersionsMin),
    temperature: turn.temperature,
    finish_reason: turn.finishReason,
    routed_experts: turn.routedExperts ?? null,
  }
}

/** Expert rows stay a view of the frame that they came in; everything else is copied out of it. Throws where it does not fit the turn before it. */
export function decodeTurn(message: TurnMessage, before: Turn | undefined): Turn {
  const tail = words(message.prompt_ids)
  const promptIds = new Uint32Array(message.prompt_start + tail.length)
  if (message.prompt_start > 0) {
    if (before === undefined || before.promptIds.length + before.completionIds.length !== message.prompt_start)
      throw new Error(`a turn extends ${message.prompt_start} ids that are not there`)
    promptIds.set(before.promptIds)
    promptIds.set(before.completionIds, before.promptIds.length)
  }
  promptIds.set(tail, message.prompt_start)
  const logprobs = new Float32Array(words(message.completion_logprobs).buffer)
  const turn = {
    promptIds,
    completionIds: words(message.completion_ids),
    logprobs,
    versions: words(message.versions),
    contextVersionsMin: words(message.context_versions_min),
    temperature: message.temperature,
    finishReason: message.finish_reason,
  }
  const { length } = turn.completionIds
  if (logprobs.length !== length || turn.versions.length !== length || turn.contextVersionsMin.length !== length)
    throw new Error(`a turn of ${length} tokens has arrays of other lengths`)
  return message.routed_experts === null ? turn : { ...turn, routedExperts: message.routed_experts }
}

/** Whether the prompt begins with everything of the turn before it. */
export function extendsTurn(turn: Turn, before: Turn): boolean {
  const { promptIds, completionIds } = before
  if (turn.promptIds.length < promptIds.length + completionIds.length) return false
  return (
    promptIds.every((id, at) => turn.promptIds[at] === id) && completionIds.every((id, at) => turn.promptIds[promptIds.length + at] === id)
  )
}

function bytesOf(array: Uint32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

function words(bytes: Uint8Array): Uint32Array<ArrayBuffer> {
  if (bytes.length % 4 !== 0) throw new Error(`${bytes.length} bytes are no words of four`)
  const copy = new Uint32Array(bytes.length / 4)
  new Uint8Array(copy.buffer).set(bytes)
  return copy
}
