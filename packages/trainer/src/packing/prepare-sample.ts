import { type OpaquePayload, type Sample, type TrainingMode, TrilithonError } from '@trilithon/core'

/** A sample as one sequence: every array covers prompt and completion, cut to the sequence length. */
export interface PreparedSample {
  readonly id: string
  readonly environment: string
  readonly inputIds: Uint32Array
  readonly mask: Uint8Array
  readonly advantages: Float32Array
  readonly logprobs: Float32Array
  readonly temperatures: Float32Array
  readonly versions: Uint32Array
  readonly contextVersionsMin: Uint32Array
  readonly reward: number | null
  readonly trainingMode: TrainingMode
  readonly profile: string
  readonly teacherLogprobs?: Float32Array
  readonly routedExperts?: OpaquePayload
}

/**
 * Joins prompt and completion and cuts all arrays to `seqLen`. The prompt has logprob 0, the temperature of the first completion token, and no
 * version. Throws `SAMPLE_INVALID` for arrays that do not fit together. Values that are not finite pass: the loss finds and names them.
 */
export function prepareSample(sample: Sample, seqLen: number): PreparedSample {
  const fault = findFault(sample)
  if (fault !== undefined) throw sampleInvalid(sample.id, fault)
  const prompt = sample.promptIds.length
  const full = prompt + sample.completionIds.length
  const length = Math.min(full, seqLen)
  /** The completion's values behind a prompt that all has `promptValue`. */
  const spread = <T extends Uint8Array | Uint32Array | Float32Array>(target: T, completion: ArrayLike<number>, promptValue = 0): T => {
    target.fill(promptValue, 0, Math.min(prompt, length))
    for (let token = prompt; token < length; token++) target[token] = completion[token - prompt] ?? 0
    return target
  }
  const inputIds = spread(new Uint32Array(length), sample.completionIds)
  inputIds.set(sample.promptIds.subarray(0, length))
  return {
    id: sample.id,
    environment: sample.environment,
    inputIds,
    mask: spread(new Uint8Array(length), sample.mask),
    advantages: new Float32Array(length).fill(sample.advantage ?? 0),
    logprobs: spread(new Float32Array(length), sample.logprobs),
    temperatures: spread(new Float32Array(length), sample.temperatures, sample.temperatures[0] ?? 1),
    versions: spread(new Uint32Array(length), sample.versions),
    contextVersionsMin: spread(new Uint32Array(length), sample.contextVersionsMin),
    reward: sample.reward,
    trainingMode: sample.trainingMode,
    profile: sample.profile,
    ...(sample.teacherLogprobs === undefined ? {} : { teacherLogprobs: sample.teacherLogprobs.slice(0, length) }),
    ...(sample.routedExperts === undefined ? {} : { routedExperts: fitRows(sample.routedExperts, length) }),
  }
}

/** Why the parts of a sample do not fit together, or undefined. */
function findFault(sample: Sample): string | undefined {
  const { promptIds, completionIds, mask, teacherLogprobs, trainingMode, temperatures, routedExperts } = sample
  if (sample.id === '') return 'it has no id'
  const full = promptIds.length + completionIds.length
  if (full === 0) return 'it has no token'
  for (const name of ['mask', 'logprobs', 'temperatures', 'versions', 'contextVersionsMin'] as const) {
    if (sample[name].length !== completionIds.length) return `${name} has ${sample[name].length} entries for ${completionIds.length} tokens`
  }
  if (teacherLogprobs !== undefined && teacherLogprobs.length !== full)
    return `teacherLogprobs has ${teacherLogprobs.length} entries for ${full} tokens`
  if (trainingMode === 'opd' && teacherLogprobs === undefined) return 'its mode is opd, but it has no teacherLogprobs'
  if (trainingMode === 'rl' && sample.advantage === null) return 'its mode is rl, but it has no advantage'
  if (promptIds.length === 0 && mask[0] === 1) return 'its first token is to be trained, but nothing predicts it'
  const cold = temperatures.find((temperature) => !(temperature > 0 && temperature < Number.POSITIVE_INFINITY))
  if (cold !== undefined) return `a temperature is ${cold}`
  return routedExperts === undefined ? undefined : findPayloadFault(routedExperts, full)
}

function findPayloadFault({ data, shape, dtype }: OpaquePayload, tokens: number): string | undefined {
  const elements = shape.reduce((product, size) => product * size, 1)
  const bytes = elements * (dtype === 'uint8' ? 1 : 2)
  if (shape.length !== 3 || bytes !== data.length) return `routedExperts of shape ${shape.join(' x ')} ${dtype} has ${data.length} bytes`
  const [rows = 0] = shape
  return rows > tokens ? `routedExperts has ${rows} rows for ${tokens} tokens` : undefined
}

/** Exactly `rows` rows: cut, or completed by missing ones (all bits set), as for the last sampled token, which was never an input. */
export function fitRows({ data, shape, dtype }: OpaquePayload, rows: number): OpaquePayload {
  const [had = 0, layers = 0, topK = 0] = shape
  const rowBytes = layers * topK * (dtype === 'uint8' ? 1 : 2)
  const fitted = new Uint8Array(rows * rowBytes).fill(0xff)
  fitted.set(data.subarray(0, Math.min(had, rows) * rowBytes))
  return { data: fitted, shape: [rows, layers, topK], dtype }
}

export function sampleInvalid(id: string, reason: string): TrilithonError {
  return new TrilithonError('SAMPLE_INVALID', `sample ${id}: ${reason}`, {
    path: id,
    hint: 'This is a fault of the program that built the sample; report it with the sample.',
    details: { sample: id },
  })
}
