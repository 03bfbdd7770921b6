import { z } from 'zod'
import { AnswerFault, type EngineAnswer, finishReasonOf } from './engine-answer.ts'

const whole = z.int().min(0)
const Head = z.looseObject({
  choices: z.tuple([
    z.looseObject({
      finish_reason: z.unknown(),
      tokens: z.looseObject({ offset: whole, count: whole }),
      routed_experts: z
        .looseObject({ offset: whole, bytes: whole, shape: z.array(whole).length(3), dtype: z.enum(['uint8', 'uint16']) })
        .nullish(),
    }),
  ]),
})

/** u32 token id, f32 log-probability, u32 version, u32 oldest version attended to. */
const bytesPerToken = 16

/**
 * An answer in our own media type: u32 length of a JSON text, the text, then raw rows that the text points into. Little endian throughout. The expert
 * rows are a view of `body`. Throws `AnswerFault`.
 */
export function parseBinaryAnswer(body: Uint8Array): EngineAnswer {
  if (body.length < 4) throw new AnswerFault(`the answer has ${body.length} bytes`)
  const textBytes = new DataView(body.buffer, body.byteOffset).getUint32(0, true)
  if (4 + textBytes > body.length) throw new AnswerFault(`a text of ${textBytes} bytes in an answer of ${body.length}`)
  const head = parseHead(Buffer.from(body.buffer, body.byteOffset + 4, textBytes).toString('utf8'))
  const rows = body.subarray(4 + textBytes)
  const [{ tokens, finish_reason, routed_experts }] = head.choices
  const end = tokens.offset + tokens.count * bytesPerToken
  if (end > rows.length) throw new AnswerFault(`tokens up to byte ${end} of ${rows.length}`)
  // A copy starts at a place where numbers may be read in words.
  const words = rows.slice(tokens.offset, end).buffer
  const integers = new Uint32Array(words)
  const floats = new Float32Array(words)
  const column = (place: number) => Uint32Array.from({ length: tokens.count }, (_, token) => integers[token * 4 + place] ?? 0)
  return {
    completionIds: column(0),
    logprobs: Float32Array.from({ length: tokens.count }, (_, token) => floats[token * 4 + 1] ?? Number.NaN),
    versions: column(2),
    contextVersionsMin: column(3),
    finishReason: finishReasonOf(finish_reason),
    routedExperts: routed_experts ? expertRows(rows, routed_experts) : null,
  }
}

function expertRows(
  rows: Uint8Array,
  { offset, bytes, shape, dtype }: { offset: number; bytes: number; shape: number[]; dtype: 'uint8' | 'uint16' },
): NonNullable<EngineAnswer['routedExperts']> {
  const expected = shape.reduce((product, size) => product * size, dtype === 'uint8' ? 1 : 2)
  if (bytes !== expected || offset + bytes > rows.length)
    throw new AnswerFault(`${bytes} bytes of routed experts at ${offset} for the shape ${shape.join('×')} of ${dtype}, of ${rows.length}`)
  return { data: rows.subarray(offset, offset + bytes), shape, dtype }
}

function parseHead(text: string): z.output<typeof Head> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new AnswerFault(`its text is no JSON: ${(cause as Error).message}`, { cause })
  }
  const parsed = Head.safeParse(json)
  if (parsed.success) return parsed.data
  throw new AnswerFault(parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '))
}
