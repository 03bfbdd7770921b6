import type { Sample } from '@trilithon/core'
import { FieldReader, rolloutsInvalid, unpackWhole } from '../msgpack/field-reader.ts'
import { MsgpackWriter, textRoom } from '../msgpack/msgpack-writer.ts'
import {
  type ExpertRows,
  payloadBytes,
  readPayload,
  readTrainingMode,
  refuseField,
  unknownVersion,
  type WireLayout,
  writePayload,
} from './wire-fields.ts'

/** The samples of one step, as orchestrator and trainer exchange them. */
export interface TrainingBatch {
  readonly step: number
  readonly samples: readonly Sample[]
}

export interface EncodedBatch {
  readonly bytes: Uint8Array
  /** The expert rows of the samples, by reference, in the order in which they lie in their file. */
  readonly experts: readonly Uint8Array[]
}

/** Pieces are put together to at least this size, so that a file is not written sample by sample. */
const chunkBytes = 1 << 20

/**
 * A batch in prime-rl's encoding (a list of fields by position), with our fields behind its own: 14 versions, 15 context_versions_min (little-endian
 * integers of 32 bits as binary), 16 profile, 17 id. Throws `ROLLOUTS_INVALID` for a sample whose arrays do not fit together.
 */
export function encodeTrainingBatch(batch: TrainingBatch, layout: WireLayout = 'trilithon'): EncodedBatch {
  const chunks = [...trainingBatchChunks(batch, layout)]
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return { bytes, experts: expertRows(batch, layout) }
}

/** The rows that go into the file of experts. */
export function expertRows({ samples }: TrainingBatch, layout: WireLayout = 'trilithon'): Uint8Array[] {
  return layout === 'prime-rl' ? [] : samples.flatMap(({ routedExperts }) => routedExperts?.data ?? [])
}

/** The encoding in pieces, made when they are asked for. */
export function* trainingBatchChunks({ step, samples }: TrainingBatch, layout: WireLayout): Generator<Uint8Array> {
  const head = new MsgpackWriter(16)
  head.array(3)
  head.array(samples.length)
  yield head.finish()
  let expertOffset = 0
  for (let first = 0; first < samples.length; ) {
    let room = 0
    let end = first
    for (; end < samples.length && room < chunkBytes; end++) room += roomOf(samples[end] as Sample, layout)
    const writer = new MsgpackWriter(room)
    for (const [index, sample] of samples.slice(first, end).entries()) {
      refuseUneven(sample, `examples[${first + index}]`)
      writeSample(writer, sample, layout, expertOffset)
      expertOffset += sample.routedExperts?.data.length ?? 0
    }
    yield writer.finish()
    first = end
  }
  const tail = new MsgpackWriter(16)
  tail.integer(step)
  tail.nil()
  yield tail.finish()
}

const primeFields = 14
const ourFields = 18

function writeSample(writer: MsgpackWriter, sample: Sample, layout: WireLayout, expertOffset: number): void {
  const { promptIds, teacherLogprobs, advantage, reward, routedExperts } = sample
  writer.array(layout === 'prime-rl' ? primeFields : ourFields)
  writer.integers(promptIds)
  writer.booleans(new Uint8Array(promptIds.length))
  writer.integers(sample.completionIds)
  writer.booleans(sample.mask)
  writer.floats(sample.logprobs)
  writer.floats(sample.temperatures)
  writer.text(sample.environment)
  if (teacherLogprobs === undefined) writer.nil()
  else writer.floats(teacherLogprobs)
  for (const number of [advantage, reward]) {
    if (number === null) writer.nil()
    else writer.float(number)
  }
  // mm_kwargs
  writer.nil()
  if (routedExperts === undefined) writer.nil()
  else if (layout === 'prime-rl') writePayload(writer, routedExperts)
  else {
    writer.array(4)
    writer.integer(expertOffset)
    writer.integer(routedExperts.data.length)
    writer.integers(routedExperts.shape)
    writer.text(routedExperts.dtype)
  }
  // mm_token_type_ids
  writer.nil()
  writer.text(sample.trainingMode)
  if (layout === 'prime-rl') return
  writer.words(sample.versions)
  writer.words(sample.contextVersionsMin)
  writer.text(sample.profile)
  writer.text(sample.id)
}

/** Bytes that a sample takes at most: 5 and 1 a prompt token; 5, 1, 9, 9, 4 and 4 a completion token; 9 a teacher's log-probability. */
function roomOf(sample: Sample, layout: WireLayout): number {
  const { promptIds, completionIds, teacherLogprobs, routedExperts } = sample
  const inline = layout === 'prime-rl' ? (routedExperts?.data.length ?? 0) : 0
  const texts = textRoom(sample.environment) + textRoom(sample.profile) + textRoom(sample.id)
  return 256 + promptIds.length * 6 + completionIds.length * 32 + (teacherLogprobs?.length ?? 0) * 9 + inline + texts
}

function refuseUneven(sample: Sample, path: string): void {
  const what = `sample ${sample.id}`
  const { completionIds, promptIds, teacherLogprobs, routedExperts } = sample
  for (const name of ['mask', 'logprobs', 'temperatures', 'versions', 'contextVersionsMin'] as const) {
    if (sample[name].length === completionIds.length) continue
    throw rolloutsInvalid(what, `${path}.${name}`, `has ${sample[name].length} entries for ${completionIds.length} tokens`)
  }
  const full = promptIds.length + completionIds.length
  if (teacherLogprobs !== undefined && teacherLogprobs.length !== full)
    throw rolloutsInvalid(what, `${path}.teacherLogprobs`, `has ${teacherLogprobs.length} entries for ${full} tokens`)
  if (routedExperts !== undefined && routedExperts.data.length !== payloadBytes(routedExperts))
    throw rolloutsInvalid(
      what,
      `${path}.routedExperts`,
      `of shape ${routedExperts.shape.join(' x ')} ${routedExperts.dtype} has ${routedExperts.data.length} bytes`,
    )
}

/**
 * Reads what `encodeTrainingBatch` or prime-rl wrote. `experts` is the file of expert rows, or gives stretches of it; rows are carried as they are,
 * those of prime-rl's form refer to `bytes`. Fields that were left out: versions are `unknownVersion`, `profile` and `id` empty. Throws
 * `ROLLOUTS_INVALID` that names the field and its index.
 */
export function decodeTrainingBatch(bytes: Uint8Array, experts?: Uint8Array | ExpertRows, what = 'training batch'): TrainingBatch {
  const reader = new FieldReader(unpackWhole(bytes, what), what, '')
  const rows = experts instanceof Uint8Array ? (offset: number, length: number) => experts.subarray(offset, offset + length) : experts
  const examples = reader.list(0, 'examples')
  const step = reader.integer(1, 'step')
  // Whoever receives a batch knows whose it is; the number of a run says nothing here.
  if (reader.has(2)) reader.integer(2, 'run_idx')
  return { step, samples: examples.map((value, index) => readSample(value, what, `examples[${index}]`, rows)) }
}

const noMultimodal = 'is set, and samples with images are not supported'

function readSample(value: unknown, what: string, path: string, rows: ExpertRows | undefined): Sample {
  const reader = new FieldReader(value, what, path)
  const promptIds = reader.integers(0, 'prompt_ids')
  const trained = reader.booleans(1, 'prompt_mask', promptIds.length).indexOf(1)
  if (trained !== -1) throw reader.fail(`prompt_mask[${trained}]`, 'is true, and tokens of a prompt are not trained')
  const completionIds = reader.integers(2, 'completion_ids')
  const tokens = completionIds.length
  refuseField(reader, 10, 'mm_kwargs', noMultimodal)
  refuseField(reader, 12, 'mm_token_type_ids', noMultimodal)
  return {
    id: reader.has(17) ? reader.text(17, 'id') : '',
    environment: reader.text(6, 'env_name'),
    promptIds,
    completionIds,
    mask: reader.booleans(3, 'completion_mask', tokens),
    logprobs: reader.floats(4, 'completion_logprobs', tokens),
    temperatures: reader.floats(5, 'completion_temperatures', tokens),
    versions: reader.words(14, 'versions', tokens, unknownVersion),
    contextVersionsMin: reader.words(15, 'context_versions_min', tokens, unknownVersion),
    advantage: reader.has(8) ? reader.number(8, 'advantage') : null,
    reward: reader.has(9) ? reader.number(9, 'reward') : null,
    trainingMode: readTrainingMode(reader, 13),
    profile: reader.has(16) ? reader.text(16, 'profile') : '',
    ...(reader.has(7) ? { teacherLogprobs: reader.floats(7, 'teacher_logprobs', promptIds.length + tokens) } : {}),
    ...(reader.has(11) ? { routedExperts: readPayload(reader.raw(11), what, `${path}.routed_experts`, rows) } : {}),
  }
}
