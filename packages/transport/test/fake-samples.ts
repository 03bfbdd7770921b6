import type { MicroBatch, Sample } from '@trilithon/core'
import fc from 'fast-check'

/** The sample of prime-rl's golden vector, with what we know besides. */
export const goldenSample: Sample = {
  id: 'sample-1',
  environment: 'e',
  promptIds: Uint32Array.of(1, 2),
  completionIds: Uint32Array.of(3, 300),
  mask: Uint8Array.of(1, 0),
  logprobs: Float32Array.of(-0.5, 0),
  temperatures: Float32Array.of(1, 1),
  versions: Uint32Array.of(7, 0),
  contextVersionsMin: Uint32Array.of(6, 0),
  advantage: 0.25,
  reward: 1,
  trainingMode: 'rl',
  profile: 'fp32',
  routedExperts: { data: Uint8Array.of(0, 1, 2, 3, 4, 5, 0, 0), shape: [4, 1, 2], dtype: 'uint8' },
}

/** A batch of step 7 with the golden sample, written by prime-rl's own structs: specification of 0.6.0, section 1.3. */
export const goldenBatch =
  '93919e92010292c2c29203cd012c92c3c292cbbfe0000000000000cb000000000000000092cb3ff0000000000000cb3ff0000000000000a165c0cb3fd0000000000000cb3ff0000000000000c093c408000102030405000093040102a575696e7438c0a2726c07c0'

/** The micro-batch of prime-rl's golden vector. Its rewards differ within a sequence there; ours are one per sequence. */
export const goldenMicroBatch: MicroBatch = {
  inputIds: Uint32Array.of(1, 2),
  positionIds: Uint32Array.of(0, 1),
  mask: Uint8Array.of(0, 1),
  advantages: Float32Array.of(0.25, 0.25),
  logprobs: Float32Array.of(0, -0.5),
  temperatures: Float32Array.of(1, 1),
  versions: Uint32Array.of(0, 9),
  contextVersionsMin: Uint32Array.of(0, 8),
  sequenceLengths: [2],
  sampleIds: ['sample-1'],
  environments: ['e'],
  rewards: [1],
  trainingMode: 'rl',
  profile: 'fp32',
}

const word = fc.oneof(fc.nat(300), fc.nat(0xffff_ffff), fc.constantFrom(0, 127, 128, 255, 256, 65535, 65536, 0xffff_ffff))
const words = (length: number) => fc.array(word, { minLength: length, maxLength: length }).map((list) => Uint32Array.from(list))
const floats = (length: number) => fc.float32Array({ minLength: length, maxLength: length })
const bits = (length: number) => fc.array(fc.nat(1), { minLength: length, maxLength: length }).map((list) => Uint8Array.from(list))
const number = fc.option(fc.double({ noNaN: true }))
const mode = fc.constantFrom('rl' as const, 'opd' as const, 'sft' as const)

const payload = fc
  .tuple(fc.nat(3), fc.nat(2), fc.nat(3), fc.constantFrom('uint8' as const, 'uint16' as const))
  .chain(([rows, layers, topK, dtype]) => {
    const bytes = rows * layers * topK * (dtype === 'uint8' ? 1 : 2)
    return fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((data) => ({ data, shape: [rows, layers, topK], dtype }))
  })

/** Any sample, long enough at times that every kind of header is written. */
export const anySample: fc.Arbitrary<Sample> = fc
  .tuple(fc.nat(40), fc.nat(40), fc.boolean(), fc.boolean())
  .chain(([prompt, tokens, hasTeacher, hasExperts]) =>
    fc.record({
      id: fc.string({ minLength: 1, unit: 'grapheme' }),
      environment: fc.string({ unit: 'grapheme', maxLength: 300 }),
      promptIds: words(prompt),
      completionIds: words(tokens),
      mask: bits(tokens),
      logprobs: floats(tokens),
      temperatures: floats(tokens),
      versions: words(tokens),
      contextVersionsMin: words(tokens),
      advantage: number,
      reward: number,
      trainingMode: mode,
      profile: fc.string(),
      ...(hasTeacher ? { teacherLogprobs: floats(prompt + tokens) } : {}),
      ...(hasExperts ? { routedExperts: payload } : {}),
    }),
  )

export const anyMicroBatch: fc.Arbitrary<MicroBatch> = fc
  .tuple(fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 5 }), fc.boolean())
  .chain(([sequenceLengths, hasMore]) => {
    const tokens = sequenceLengths.reduce((sum, length) => sum + length, 0)
    const perSequence = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: sequenceLengths.length, maxLength: sequenceLengths.length })
    return fc.record({
      inputIds: words(tokens),
      positionIds: words(tokens),
      mask: bits(tokens),
      advantages: floats(tokens),
      logprobs: floats(tokens),
      temperatures: floats(tokens),
      versions: words(tokens),
      contextVersionsMin: words(tokens),
      sequenceLengths: fc.constant(sequenceLengths),
      sampleIds: perSequence(fc.string()),
      environments: perSequence(fc.string()),
      rewards: perSequence(number),
      trainingMode: mode,
      profile: fc.string(),
      ...(hasMore ? { teacherLogprobs: floats(tokens), routedExperts: payload } : {}),
    })
  })
