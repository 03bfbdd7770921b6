import type { Sample } from '@trilithon/core'
import fc from 'fast-check'
import { pack, unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { fails } from '../../test/fails.ts'
import { anySample, goldenBatch, goldenSample } from '../../test/fake-samples.ts'
import { decodeTrainingBatch, encodeTrainingBatch } from './training-batch.ts'
import { unknownVersion } from './wire-fields.ts'

const goldenBytes = Buffer.from(goldenBatch, 'hex')

const join = (parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts))

test('the bytes are those of prime-rl', () => {
  const { bytes, experts } = encodeTrainingBatch({ step: 7, samples: [goldenSample] }, 'prime-rl')
  expect(bytes).toHaveLength(104)
  expect(Buffer.from(bytes).toString('hex')).toBe(goldenBatch)
  expect(experts).toEqual([])
})

test('what prime-rl wrote is read; what it does not know is marked as unknown', () => {
  const { step, samples } = decodeTrainingBatch(goldenBytes)
  const unknown = Uint32Array.of(unknownVersion, unknownVersion)
  expect(step).toBe(7)
  expect(samples).toEqual([{ ...goldenSample, id: '', profile: '', versions: unknown, contextVersionsMin: unknown }])
})

test('our fields are behind the others, expert rows in a file of their own', () => {
  const { bytes, experts } = encodeTrainingBatch({ step: 7, samples: [goldenSample, { ...goldenSample, id: 'sample-2' }] })
  const [examples, ...rest] = unpack(bytes)
  expect(rest).toEqual([7, null])
  const [prime] = unpack(goldenBytes)[0]
  expect(examples[0]).toEqual([
    ...prime.with(11, [0, 8, [4, 1, 2], 'uint8']),
    Uint8Array.of(7, 0, 0, 0, 0, 0, 0, 0),
    Uint8Array.of(6, 0, 0, 0, 0, 0, 0, 0),
    'fp32',
    'sample-1',
  ])
  expect(examples[1][11]).toEqual([8, 8, [4, 1, 2], 'uint8'])
  // By reference: whoever carries them makes no copy.
  expect(experts[0]).toBe(goldenSample.routedExperts?.data)
})

test('whatever is written is read again', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(anySample, { maxLength: 4 }), (step, samples) => {
      const ours = encodeTrainingBatch({ step, samples })
      expect(decodeTrainingBatch(ours.bytes, join(ours.experts))).toEqual({ step, samples })
      const theirs = decodeTrainingBatch(encodeTrainingBatch({ step, samples }, 'prime-rl').bytes).samples
      expect(
        theirs.map(({ completionIds, logprobs, reward, routedExperts }) => ({ completionIds, logprobs, reward, routedExperts })),
      ).toEqual(samples.map(({ completionIds, logprobs, reward, routedExperts }) => ({ completionIds, logprobs, reward, routedExperts })))
    }),
    { numRuns: 60 },
  )
})

test('a batch of many pieces is one value', () => {
  const tokens = 9000
  const samples = Array.from({ length: 5 }, (_, index): Sample => {
    const versions = new Uint32Array(tokens).fill(index)
    const values = Float32Array.from({ length: tokens }, (_, token) => -token / 8)
    const ids = Uint32Array.from({ length: tokens }, (_, token) => token * 17)
    const { routedExperts: _none, ...rest } = goldenSample
    const lists = { completionIds: ids, mask: new Uint8Array(tokens).fill(1), logprobs: values, temperatures: values }
    return { ...rest, ...lists, id: `s${index}`, versions, contextVersionsMin: versions }
  })
  expect(decodeTrainingBatch(encodeTrainingBatch({ step: 1, samples }).bytes).samples).toEqual(samples)
})

test('expert rows refer to what they were read from', () => {
  const inline = decodeTrainingBatch(goldenBytes).samples[0]?.routedExperts
  expect(inline?.data.buffer).toBe(goldenBytes.buffer)
  const { bytes, experts } = encodeTrainingBatch({ step: 7, samples: [goldenSample] })
  const file = join(experts)
  expect(decodeTrainingBatch(bytes, file).samples[0]?.routedExperts?.data.buffer).toBe(file.buffer)
})

/** The golden sample's fields as a library sees them, to be written with something changed. */
const fields = (): unknown[] => unpack(goldenBytes)[0][0]
const decode = (sample: unknown, experts?: Uint8Array) => decodeTrainingBatch(pack([[sample], 7, null]), experts).samples[0]

test('fields at the end may be missing, more may follow, integers serve as floats', () => {
  expect(decode(fields().slice(0, 7))).toMatchObject({ advantage: null, reward: null, trainingMode: 'rl' })
  expect(decode([...fields(), null, null, 'fp32', 'id', { later: true }, 5])).toMatchObject({ profile: 'fp32', id: 'id' })
  expect(decode(fields().with(4, [-1, 0]).with(9, 3))).toMatchObject({ logprobs: Float32Array.of(-1, 0), reward: 3 })
  expect(decodeTrainingBatch(pack([[], 3])).samples).toEqual([])
})

test.for<[string, unknown, RegExp]>([
  ['not a sample', 5, /examples\[0\] is number, not a list of fields/],
  ['a required field missing', fields().slice(0, 6), /examples\[0\]\.env_name is missing/],
  ['a token that is no integer', fields().with(0, [1, 1.5]), /examples\[0\]\.prompt_ids\[1\] is 1\.5/],
  ['a negative token', fields().with(2, [3, -1]), /completion_ids\[1\] is -1/],
  ['a token of more than 32 bits', fields().with(2, [2 ** 32, 1]), /completion_ids\[0\] is 4294967296/],
  ['a mask of numbers', fields().with(3, [1, 0]), /completion_mask\[0\] is number/],
  ['a mask that is too short', fields().with(3, [true]), /completion_mask has 1 entries for 2 tokens/],
  ['a prompt that is to be trained', fields().with(1, [false, true]), /prompt_mask\[1\] is true/],
  ['a text as a number', fields().with(4, [-1, '0']), /completion_logprobs\[1\] is string/],
  ['temperatures that are no list', fields().with(5, 1), /completion_temperatures is number, not a list/],
  ['a name that is no text', fields().with(6, 7), /env_name is number/],
  ['too few of the teacher', fields().with(7, [0, 0, 0]), /teacher_logprobs has 3 entries for 4 tokens/],
  ['an advantage per token', fields().with(8, [1]), /advantage is a list/],
  ['a reward that is a text', fields().with(9, '1'), /reward is string/],
  ['images', fields().with(10, {}), /mm_kwargs is set/],
  ['types of tokens', fields().with(12, [0]), /mm_token_type_ids is set/],
  ['an unknown mode', fields().with(13, 'grpo'), /training_mode is "grpo"/],
  ['experts of another type', fields().with(11, [Buffer.alloc(8), [4, 1, 2], 'int8']), /routed_experts\.dtype is "int8"/],
  [
    'experts that do not fill their shape',
    fields().with(11, [Buffer.alloc(7), [4, 1, 2], 'uint8']),
    /routed_experts\.shape is 4 x 1 x 2 uint8 for 7/,
  ],
  ['experts whose data is a list', fields().with(11, [[1], [1], 'uint8']), /routed_experts\.data is a list, not binary/],
  ['experts with a fraction of a row', fields().with(11, [Buffer.alloc(8), [0.5, 16], 'uint8']), /routed_experts\.shape\[0\] is 0\.5/],
  ['experts without their file', fields().with(11, [0, 8, [4, 1, 2], 'uint8']), /routed_experts\.offset refers to a file/],
  ['versions as a list', [...fields(), [1, 2]], /versions is a list, not binary/],
  ['versions that are too few', [...fields(), Buffer.alloc(4)], /versions has 4 bytes for 2 tokens/],
  ['an id that is a number', [...fields(), null, null, 'fp32', 4], /id is number/],
])('refused: %s', ([, sample, message]) => {
  expect(() => decode(sample)).toThrow(fails('ROLLOUTS_INVALID', message))
})

test('refused: expert rows outside their file', () => {
  expect(() => decode(fields().with(11, [4, 8, [4, 1, 2], 'uint8']), new Uint8Array(11))).toThrow(
    fails('ROLLOUTS_INVALID', /offset 4 with 8 bytes/),
  )
})

test.for<[string, Uint8Array, RegExp]>([
  ['nothing', new Uint8Array(), /not MessagePack/],
  ['bytes behind the value', Buffer.concat([goldenBytes, Buffer.of(0)]), /not MessagePack/],
  ['no list', pack({ examples: [] }), /is object, not a list/],
  ['no samples', pack(['x', 7]), /examples is string/],
  ['a negative step', pack([[], -1]), /step is -1/],
  ['a run that is a text', pack([[], 1, 'run']), /run_idx is run/],
])('refused: a batch with %s', ([, bytes, message]) => {
  expect(() => decodeTrainingBatch(bytes, undefined, 'file')).toThrow(fails('ROLLOUTS_INVALID', message))
})

test('wherever a batch is cut short, that is found', () => {
  for (let length = 0; length < goldenBytes.length; length++)
    expect(() => decodeTrainingBatch(goldenBytes.subarray(0, length))).toThrow(expect.objectContaining({ code: 'ROLLOUTS_INVALID' }))
})

test('whichever byte is changed, the answer is a batch or ROLLOUTS_INVALID', () => {
  const { bytes, experts } = encodeTrainingBatch({ step: 7, samples: [goldenSample] })
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, value) => {
      try {
        decodeTrainingBatch(bytes.with(at, value), join(experts))
      } catch (error) {
        expect(error).toMatchObject({ code: 'ROLLOUTS_INVALID' })
      }
    }),
    { numRuns: 1000 },
  )
})

test.for<[string, Partial<Sample>, RegExp]>([
  ['mask', { mask: new Uint8Array(3) }, /sample sample-1: examples\[0\]\.mask has 3 entries for 2 tokens/],
  ['versions', { versions: new Uint32Array(1) }, /versions has 1 entries/],
  ['teacher', { teacherLogprobs: new Float32Array(2) }, /teacherLogprobs has 2 entries for 4 tokens/],
  [
    'experts',
    { routedExperts: { data: new Uint8Array(9), shape: [4, 1, 2], dtype: 'uint8' } },
    /routedExperts of shape 4 x 1 x 2 uint8 has 9 bytes/,
  ],
])('what no reader takes is not written: %s', ([, part, message]) => {
  expect(() => encodeTrainingBatch({ step: 0, samples: [{ ...goldenSample, ...part }] })).toThrow(fails('ROLLOUTS_INVALID', message))
})
