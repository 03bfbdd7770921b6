import type { MicroBatch } from '@trilithon/core'
import { FieldReader, rolloutsInvalid, unpackWhole } from '../msgpack/field-reader.ts'
import { MsgpackWriter, textRoom } from '../msgpack/msgpack-writer.ts'
import { payloadBytes, readPayload, readTrainingMode, refuseField, unknownVersion, type WireLayout, writePayload } from './wire-fields.ts'

const primeFields = 17
const ourFields = 21

/**
 * Micro-batches of one data rank in prime-rl's encoding, with our fields behind its own: 17 versions, 18 context_versions_min, 19 profile,
 * 20 sample_ids (one per sequence). Names of environments and rewards, which we hold per sequence, are there per token. Throws `ROLLOUTS_INVALID` for
 * a micro-batch whose arrays do not fit together.
 */
export function encodeMicroBatches(batches: readonly MicroBatch[], layout: WireLayout = 'trilithon'): Uint8Array {
  for (const [index, batch] of batches.entries()) refuseUneven(batch, `[${index}]`)
  const writer = new MsgpackWriter(batches.reduce((sum, batch) => sum + roomOf(batch), 16))
  writer.array(batches.length)
  for (const batch of batches) {
    writeMicroBatch(writer, batch, rewardsPerToken(batch), layout)
  }
  return writer.finish()
}

/** One micro-batch; `rewards` has a number per token, NaN where there is none. */
export function writeMicroBatch(writer: MsgpackWriter, batch: MicroBatch, rewards: Float64Array, layout: WireLayout): void {
  writer.array(layout === 'prime-rl' ? primeFields : ourFields)
  writer.integers(batch.inputIds)
  writer.booleans(batch.mask)
  writer.floats(batch.advantages)
  writer.floats(batch.logprobs)
  writer.integers(batch.positionIds)
  writer.floats(batch.temperatures)
  writer.array(batch.inputIds.length)
  for (const [sequence, length] of batch.sequenceLengths.entries()) writer.repeatedText(batch.environments[sequence] ?? '', length)
  writer.integers(batch.sequenceLengths)
  if (batch.teacherLogprobs === undefined) writer.nil()
  else writer.floats(batch.teacherLogprobs)
  // lora_num_tokens
  writer.nil()
  if (batch.routedExperts === undefined) writer.nil()
  else writePayload(writer, batch.routedExperts)
  // mm_kwargs, mm_token_type_ids
  writer.nil()
  writer.nil()
  writer.text(batch.trainingMode)
  writer.floats(rewards)
  // run_id, run_step
  writer.nil()
  writer.nil()
  if (layout === 'prime-rl') return
  writer.words(batch.versions)
  writer.words(batch.contextVersionsMin)
  writer.text(batch.profile)
  writer.array(batch.sampleIds.length)
  for (const id of batch.sampleIds) writer.text(id)
}

function rewardsPerToken({ sequenceLengths, rewards, inputIds }: MicroBatch): Float64Array {
  const perToken = new Float64Array(inputIds.length)
  for (const [sequence, end] of ends(sequenceLengths).entries())
    perToken.fill(rewards[sequence] ?? Number.NaN, end - (sequenceLengths[sequence] ?? 0), end)
  return perToken
}

/** Bytes that a micro-batch takes at most. */
function roomOf(batch: MicroBatch): number {
  const names = batch.environments.reduce((sum, name, index) => sum + textRoom(name) * (batch.sequenceLengths[index] ?? 0), 0)
  const ids = batch.sampleIds.reduce((sum, id) => sum + textRoom(id), 0)
  return (
    256 +
    batch.inputIds.length * 64 +
    batch.sequenceLengths.length * 9 +
    names +
    ids +
    (batch.routedExperts?.data.length ?? 0) +
    textRoom(batch.profile)
  )
}

function refuseUneven(batch: MicroBatch, path: string): void {
  const fail = (field: string, reason: string) => rolloutsInvalid('micro-batches', `${path}.${field}`, reason)
  const tokens = batch.inputIds.length
  const names = [
    'positionIds',
    'mask',
    'advantages',
    'logprobs',
    'temperatures',
    'versions',
    'contextVersionsMin',
    'teacherLogprobs',
  ] as const
  for (const name of names) {
    const length = batch[name]?.length ?? tokens
    if (length !== tokens) throw fail(name, `has ${length} entries for ${tokens} tokens`)
  }
  const sequences = batch.sequenceLengths.length
  for (const name of ['sampleIds', 'environments', 'rewards'] as const) {
    if (batch[name].length !== sequences) throw fail(name, `has ${batch[name].length} entries for ${sequences} sequences`)
  }
  const sum = batch.sequenceLengths.reduce((total, length) => total + length, 0)
  if (sum !== tokens) throw fail('sequenceLengths', `add up to ${sum} of ${tokens} tokens`)
  const { routedExperts } = batch
  if (routedExperts !== undefined && routedExperts.data.length !== payloadBytes(routedExperts))
    throw fail('routedExperts', `of shape ${routedExperts.shape.join(' x ')} ${routedExperts.dtype} has ${routedExperts.data.length} bytes`)
}

/**
 * Reads what `encodeMicroBatches` or prime-rl wrote; expert rows refer to `bytes`. A sequence has the reward of its last token. Fields that were left
 * out: versions are `unknownVersion`, the profile and the ids empty, rewards null. Throws `ROLLOUTS_INVALID` that names the field and its index.
 */
export function decodeMicroBatches(bytes: Uint8Array, what = 'micro-batches'): MicroBatch[] {
  const value = unpackWhole(bytes, what)
  if (!Array.isArray(value)) throw rolloutsInvalid(what, '', 'is not a list of micro-batches')
  return value.map((one, index) => readMicroBatch(one, what, `[${index}]`))
}

function readMicroBatch(value: unknown, what: string, path: string): MicroBatch {
  const reader = new FieldReader(value, what, path)
  const inputIds = reader.integers(0, 'input_ids')
  const tokens = inputIds.length
  const sequenceLengths = reader.counts(7, 'sequence_lengths')
  const sum = sequenceLengths.reduce((total, length) => total + length, 0)
  if (sum !== tokens) throw reader.fail('sequence_lengths', `add up to ${sum} of ${tokens} tokens`)
  refuseField(reader, 9, 'lora_num_tokens', 'is set, and several adapters are not supported')
  for (const [index, name] of [[11, 'mm_kwargs'] as const, [12, 'mm_token_type_ids'] as const])
    refuseField(reader, index, name, 'is set, and samples with images are not supported')
  // prime-rl's names of runs: there is one.
  if (reader.has(15)) reader.text(15, 'run_id')
  if (reader.has(16)) reader.integer(16, 'run_step')
  const rewards = reader.has(14) ? reader.numbers(14, 'rewards', tokens) : undefined
  const sampleIds = reader.has(20) ? reader.texts(20, 'sample_ids') : sequenceLengths.map(() => '')
  if (sampleIds.length !== sequenceLengths.length)
    throw reader.fail('sample_ids', `has ${sampleIds.length} entries for ${sequenceLengths.length} sequences`)
  return {
    inputIds,
    positionIds: reader.integers(4, 'position_ids', tokens),
    mask: reader.booleans(1, 'loss_mask', tokens),
    advantages: reader.floats(2, 'advantages', tokens),
    logprobs: reader.floats(3, 'inference_logprobs', tokens),
    temperatures: reader.floats(5, 'temperatures', tokens),
    versions: reader.words(17, 'versions', tokens, unknownVersion),
    contextVersionsMin: reader.words(18, 'context_versions_min', tokens, unknownVersion),
    sequenceLengths,
    sampleIds,
    environments: readEnvironments(reader, sequenceLengths, tokens),
    rewards: ends(sequenceLengths).map((end, sequence) => {
      const reward = sequenceLengths[sequence] === 0 ? undefined : rewards?.[end - 1]
      return reward === undefined || Number.isNaN(reward) ? null : reward
    }),
    trainingMode: readTrainingMode(reader, 13),
    profile: reader.has(19) ? reader.text(19, 'profile') : '',
    ...(reader.has(8) ? { teacherLogprobs: reader.floats(8, 'teacher_logprobs', tokens) } : {}),
    ...(reader.has(10) ? { routedExperts: readPayload(reader.raw(10), what, `${path}.routed_experts`) } : {}),
  }
}

/** Where each sequence ends, in tokens. */
function ends(lengths: readonly number[]): number[] {
  let end = 0
  return lengths.map((length) => {
    end += length
    return end
  })
}

/** One name per sequence out of one per token. */
function readEnvironments(reader: FieldReader, lengths: readonly number[], tokens: number): string[] {
  const names = reader.texts(6, 'env_names')
  if (names.length !== tokens) throw reader.fail('env_names', `has ${names.length} entries for ${tokens} tokens`)
  return ends(lengths).map((end, sequence) => {
    const first = end - (lengths[sequence] ?? 0)
    const name = lengths[sequence] === 0 ? '' : (names[first] ?? '')
    for (let token = first; token < end; token++) {
      if (names[token] !== name) throw reader.fail(`env_names[${token}]`, `is "${names[token]}" in a sequence of "${name}"`)
    }
    return name
  })
}
