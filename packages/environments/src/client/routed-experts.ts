import type { OpaquePayload } from '@trilithon/core'
import { z } from 'zod'
import { AnswerFault } from './engine-answer.ts'

const Described = z.looseObject({
  data: z.string(),
  shape: z.array(z.int().min(0)).length(3),
  start: z.int().min(0).default(0),
  dtype: z.enum(['uint8', 'uint16']).default('uint8'),
})

/**
 * Expert rows in JSON: an object of base64, shape and start (prime-rl), or the base64 of a `.npy` file (vLLM). null where there are none. Throws
 * `AnswerFault`.
 */
export function parseRoutedExperts(value: unknown): OpaquePayload | null {
  if (value === null || value === undefined) return null
  const payload = typeof value === 'string' ? parseNpy(Buffer.from(value, 'base64')) : parseDescribed(value)
  const bytes = payload.shape.reduce((product, size) => product * size, payload.dtype === 'uint8' ? 1 : 2)
  if (payload.data.length !== bytes)
    throw new AnswerFault(`${payload.data.length} bytes of routed experts for the shape ${payload.shape.join('×')} of ${payload.dtype}`)
  return payload
}

function parseDescribed(value: unknown): OpaquePayload {
  const parsed = Described.safeParse(value)
  if (!parsed.success) throw new AnswerFault('choices[0].routed_experts is neither an object of base64 and shape nor a text')
  const { data, shape, start, dtype } = parsed.data
  if (start !== 0) throw new AnswerFault(`routed experts begin at row ${start}, and all were asked for`)
  return { data: Buffer.from(data, 'base64'), shape, dtype }
}

/** The NumPy format, versions 1 to 3: magic, version, length of the header, a Python dictionary, the rows in C order. */
function parseNpy(file: Buffer): OpaquePayload {
  if (file.subarray(0, 6).toString('latin1') !== '\x93NUMPY' || file.length < 12)
    throw new AnswerFault('choices[0].routed_experts is no .npy file')
  const isFirst = file[6] === 1
  const headerEnd = isFirst ? 10 + file.readUInt16LE(8) : 12 + file.readUInt32LE(8)
  const header = file.subarray(isFirst ? 10 : 12, headerEnd).toString('latin1')
  const type = /'descr':\s*'([^']*)'/.exec(header)?.[1]
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1]
  const dtype = type === '|u1' ? 'uint8' : type === '<u2' ? 'uint16' : undefined
  if (dtype === undefined || shape === undefined || /'fortran_order':\s*True/.test(header))
    throw new AnswerFault(`routed experts have the header ${header.trim()}`)
  const sizes = shape
    .split(',')
    .filter((size) => size.trim() !== '')
    .map(Number)
  return { data: file.subarray(headerEnd), shape: sizes, dtype }
}
