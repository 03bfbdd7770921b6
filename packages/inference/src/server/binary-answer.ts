import { invariant } from '@trilithon/core'
import { type AnswerContext, answerOf } from './generate-answer.ts'
import type { Completion, Generation } from './generation.ts'

/** Media type that asks for the binary answer, and that it has. */
export const binaryMediaType = 'application/x-trilithon-generate'

/** u32 token id, f32 log-probability, u32 version, u32 oldest version in the context. */
const tokenBytes = 16
const alignment = 16

/**
 * The answer as u32 (little endian) L, L bytes of JSON, then raw rows. The JSON is the answer without what there is one of per token: a choice has
 * `tokens` {offset, count} and `routed_experts` {offset, bytes, shape, dtype} (null without) instead, at offsets into the rows. The JSON ends with spaces, so that
 * rows begin at a multiple of 16 bytes of the body, as each part of them does.
 */
export function binaryAnswer(generation: Generation, context: AnswerContext): Buffer {
  const parts: { readonly offset: number; readonly bytes: Uint8Array }[] = []
  let size = 0
  const place = (bytes: Uint8Array): number => {
    const offset = size
    parts.push({ offset, bytes })
    size += Math.ceil(bytes.byteLength / alignment) * alignment
    return offset
  }
  const choices = generation.completions.map((completion) => choiceOf(completion, generation, place))
  const text = Buffer.from(JSON.stringify(answerOf(generation, choices, context)))
  const jsonBytes = Math.ceil((4 + text.byteLength) / alignment) * alignment - 4
  const body = Buffer.alloc(4 + jsonBytes + size)
  body.writeUInt32LE(jsonBytes, 0)
  body.fill(' ', 4, 4 + jsonBytes)
  body.set(text, 4)
  for (const { offset, bytes } of parts) body.set(bytes, 4 + jsonBytes + offset)
  return body
}

function choiceOf(completion: Completion, { request }: Generation, place: (bytes: Uint8Array) => number) {
  const { end } = completion
  invariant(end !== null, 'an answer is written when its completions have ended')
  const { routedExperts, indexChoices } = end
  return {
    index: completion.index,
    finish_reason: end.reason,
    stop_reason: end.stopId,
    sampling_mask: null,
    tokens: { offset: place(tokenRecords(completion)), count: completion.tokenIds.length },
    routed_experts:
      routedExperts === null
        ? null
        : {
            ...{ offset: place(routedExperts.data), bytes: routedExperts.data.byteLength },
            ...{ shape: routedExperts.shape, dtype: routedExperts.dtype },
          },
    ...(request.returnsIndexChoices && indexChoices !== null
      ? {
          index_choices: {
            offset: place(new Uint8Array(indexChoices.data.buffer, indexChoices.data.byteOffset, indexChoices.data.byteLength)),
            ...{ bytes: indexChoices.data.byteLength, shape: indexChoices.shape, dtype: 'int32' },
          },
        }
      : {}),
  }
}

function tokenRecords({ tokenIds, logprobs, versions, contextVersionsMin }: Completion): Uint8Array {
  const records = Buffer.alloc(tokenIds.length * tokenBytes)
  for (const [index, id] of tokenIds.entries()) {
    const at = index * tokenBytes
    records.writeUInt32LE(id, at)
    records.writeFloatLE(logprobs[index] ?? Number.NaN, at + 4)
    records.writeUInt32LE(versions[index] ?? 0, at + 8)
    records.writeUInt32LE(contextVersionsMin[index] ?? 0, at + 12)
  }
  return records
}
