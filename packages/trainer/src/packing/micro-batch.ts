import { invariant, type MicroBatch, type OpaquePayload } from '@trilithon/core'
import { fitRows, type PreparedSample } from './prepare-sample.ts'

/** Token id of padding; masked, so any would do. prime-rl writes the same. */
const paddingId = 1

/**
 * Lays sequences behind each other and pads the whole to a multiple of `multiple` tokens. Padding is a sequence of its own with an empty id. All
 * samples have one training mode and one profile, and all or none of them routed experts.
 */
export function assembleMicroBatch(samples: readonly PreparedSample[], multiple = 1): MicroBatch {
  const [first] = samples
  invariant(first !== undefined, 'a micro-batch has at least one sample')
  const lengths = samples.map(({ inputIds }) => inputIds.length)
  const tokens = lengths.reduce((sum, length) => sum + length, 0)
  const padding = (multiple - (tokens % multiple)) % multiple
  const total = tokens + padding
  const join = <T extends Uint8Array | Uint32Array | Float32Array>(
    target: T,
    arrayOf: (sample: PreparedSample) => ArrayLike<number>,
  ): T => {
    let at = 0
    for (const sample of samples) {
      target.set(arrayOf(sample), at)
      at += sample.inputIds.length
    }
    return target
  }
  const isPadded = padding > 0
  const teacher = samples.every(({ teacherLogprobs }) => teacherLogprobs !== undefined)
  return {
    inputIds: join(new Uint32Array(total).fill(paddingId), ({ inputIds }) => inputIds),
    positionIds: positions([...lengths, padding], total),
    mask: join(new Uint8Array(total), ({ mask }) => mask),
    advantages: join(new Float32Array(total), ({ advantages }) => advantages),
    logprobs: join(new Float32Array(total), ({ logprobs }) => logprobs),
    temperatures: join(new Float32Array(total).fill(1), ({ temperatures }) => temperatures),
    versions: join(new Uint32Array(total), ({ versions }) => versions),
    contextVersionsMin: join(new Uint32Array(total), ({ contextVersionsMin }) => contextVersionsMin),
    sequenceLengths: isPadded ? [...lengths, padding] : lengths,
    sampleIds: [...samples.map(({ id }) => id), ...(isPadded ? [''] : [])],
    environments: [...samples.map(({ environment }) => environment), ...(isPadded ? [''] : [])],
    rewards: [...samples.map(({ reward }) => reward), ...(isPadded ? [null] : [])],
    trainingMode: first.trainingMode,
    profile: first.profile,
    ...(teacher ? { teacherLogprobs: join(new Float32Array(total), ({ teacherLogprobs }) => teacherLogprobs ?? []) } : {}),
    ...(first.routedExperts === undefined ? {} : { routedExperts: joinRows(samples, first.routedExperts, total) }),
  }
}

/** A copy of a micro-batch that trains nothing and counts for nothing, for a rank that would else have one fewer. */
export function idleCopy(batch: MicroBatch): MicroBatch {
  return {
    ...batch,
    inputIds: batch.inputIds.slice(),
    positionIds: batch.positionIds.slice(),
    mask: new Uint8Array(batch.mask.length),
    advantages: new Float32Array(batch.advantages.length),
    logprobs: batch.logprobs.slice(),
    temperatures: batch.temperatures.slice(),
    versions: batch.versions.slice(),
    contextVersionsMin: batch.contextVersionsMin.slice(),
    sequenceLengths: [...batch.sequenceLengths],
    sampleIds: batch.sampleIds.map(() => ''),
    environments: batch.environments.map(() => ''),
    rewards: batch.rewards.map(() => null),
  }
}

function positions(lengths: readonly number[], total: number): Uint32Array {
  const ids = new Uint32Array(total)
  let at = 0
  for (const length of lengths) for (let position = 0; position < length; position++) ids[at++] = position
  return ids
}

function joinRows(samples: readonly PreparedSample[], like: OpaquePayload, total: number): OpaquePayload {
  const parts = samples.map(({ routedExperts }) => routedExperts?.data ?? new Uint8Array())
  const data = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    data.set(part, at)
    at += part.length
  }
  const rows = samples.reduce((sum, { inputIds }) => sum + inputIds.length, 0)
  return fitRows({ ...like, data, shape: [rows, ...like.shape.slice(1)] }, total)
}
