import type { OpaquePayload, TrainingMode } from '@trilithon/core'
import { FieldReader } from '../msgpack/field-reader.ts'
import type { MsgpackWriter } from '../msgpack/msgpack-writer.ts'

/** Stands for the version of a token whose writer told none: higher than any, so that a trainer refuses it rather than takes it for fresh. */
export const unknownVersion = 0xffff_ffff

/**
 * Which fields are written: `trilithon` all of them, with routed experts of rollouts in a file of their own; `prime-rl` those that it knows, routed
 * experts among them.
 */
export type WireLayout = 'trilithon' | 'prime-rl'

const modes: readonly string[] = ['rl', 'opd', 'sft'] satisfies readonly TrainingMode[]

export function readTrainingMode(reader: FieldReader, index: number): TrainingMode {
  if (!reader.has(index)) return 'rl'
  const mode = reader.text(index, 'training_mode')
  if (!modes.includes(mode)) throw reader.fail('training_mode', `is "${mode}", not one of ${modes.join(', ')}`)
  return mode as TrainingMode
}

/** Refuses a field that says something which no sample of ours can hold. */
export function refuseField(reader: FieldReader, index: number, name: string, reason: string): void {
  if (reader.has(index)) throw reader.fail(name, reason)
}

/** Bytes of a payload by its shape and element. */
export function payloadBytes({ shape, dtype }: Omit<OpaquePayload, 'data'>): number {
  return shape.reduce((product, size) => product * size, dtype === 'uint16' ? 2 : 1)
}

/** The payload inside the struct: `[data, shape, dtype]`. */
export function writePayload(writer: MsgpackWriter, { data, shape, dtype }: OpaquePayload): void {
  writer.array(3)
  writer.binary(data)
  writer.integers(shape)
  writer.text(dtype)
}

/** Bytes of a stretch of the file of expert rows. */
export type ExpertRows = (offset: number, bytes: number) => Uint8Array

/** Both forms: `[data, shape, dtype]`, whose rows refer to what was decoded, and `[offset, bytes, shape, dtype]`, whose rows `rows` gives. */
export function readPayload(value: unknown, what: string, path: string, rows?: ExpertRows): OpaquePayload {
  const reader = new FieldReader(value, what, path)
  const isInline = typeof reader.raw(0) !== 'number'
  const shape = reader.counts(isInline ? 1 : 2, 'shape')
  const dtype = reader.text(isInline ? 2 : 3, 'dtype')
  if (dtype !== 'uint8' && dtype !== 'uint16') throw reader.fail('dtype', `is "${dtype}", not uint8 or uint16`)
  const bytes = isInline ? reader.binary(0, 'data').length : reader.integer(1, 'bytes')
  if (bytes !== payloadBytes({ shape, dtype })) throw reader.fail('shape', `is ${shape.join(' x ')} ${dtype} for ${bytes} bytes`)
  if (isInline) return { data: reader.binary(0, 'data'), shape, dtype }
  if (rows === undefined) throw reader.fail('offset', 'refers to a file of expert rows, and there is none')
  const offset = reader.integer(0, 'offset')
  const data = rows(offset, bytes)
  if (data.length !== bytes) throw reader.fail('offset', `${offset} with ${bytes} bytes lies outside the file of expert rows`)
  return { data, shape, dtype }
}
