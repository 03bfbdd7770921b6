import type { MicroBatch } from '@trilithon/core'
import fc from 'fast-check'
import { pack, unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { fails } from '../../test/fails.ts'
import { anyMicroBatch, goldenMicroBatch } from '../../test/fake-samples.ts'
import { MsgpackWriter } from '../msgpack/msgpack-writer.ts'
import { decodeMicroBatches, encodeMicroBatches, writeMicroBatch } from './micro-batches.ts'
import { unknownVersion } from './wire-fields.ts'

/** Written by prime-rl's own structs: specification of 0.6.0, section 1.4. */
const golden =
  '91dc001192010292c2c392cb3fd0000000000000cb3fd000000000000092cb0000000000000000cbbfe000000000000092000192cb3ff0000000000000cb3ff000000000000092a165a1659102c0c0c0c0c0a2726c92cb7ff8000000000000cb3ff0000000000000c0c0'
const goldenBytes = Buffer.from(golden, 'hex')

test('the bytes are those of prime-rl', () => {
  const writer = new MsgpackWriter(256)
  writer.array(1)
  writeMicroBatch(writer, goldenMicroBatch, Float64Array.of(Number.NaN, 1), 'prime-rl')
  expect(writer.finish()).toHaveLength(106)
  expect(Buffer.from(writer.finish()).toString('hex')).toBe(golden)
})

test('per sequence, rewards are those of all its tokens', () => {
  const [batch] = unpack(encodeMicroBatches([{ ...goldenMicroBatch, rewards: [null] }], 'prime-rl'))
  expect(batch).toHaveLength(17)
  expect(batch[14]).toEqual([Number.NaN, Number.NaN])
})

test('what prime-rl wrote is read; what it does not know is marked as unknown', () => {
  const unknown = Uint32Array.of(unknownVersion, unknownVersion)
  expect(decodeMicroBatches(goldenBytes)).toEqual([
    { ...goldenMicroBatch, profile: '', sampleIds: [''], versions: unknown, contextVersionsMin: unknown },
  ])
})

test('our fields are behind the others', () => {
  const [batch] = unpack(encodeMicroBatches([goldenMicroBatch]))
  const ours = [Uint8Array.of(0, 0, 0, 0, 9, 0, 0, 0), Uint8Array.of(0, 0, 0, 0, 8, 0, 0, 0), 'fp32', ['sample-1']]
  expect(batch).toEqual([...unpack(goldenBytes)[0].with(14, [1, 1]), ...ours])
})

test('whatever is written is read again', () => {
  fc.assert(
    fc.property(fc.array(anyMicroBatch, { maxLength: 3 }), (batches) => {
      expect(decodeMicroBatches(encodeMicroBatches(batches))).toEqual(batches)
      const theirs = decodeMicroBatches(encodeMicroBatches(batches, 'prime-rl'))
      expect(theirs.map(({ environments, rewards }) => ({ environments, rewards }))).toEqual(
        batches.map(({ environments, rewards }) => ({ environments, rewards })),
      )
    }),
    { numRuns: 80 },
  )
})

const fields = (): unknown[] => unpack(goldenBytes)[0]

test.for<[string, unknown, RegExp]>([
  ['not a micro-batch', null, /\[0\] is null, not a list of fields/],
  ['lengths that add up to something else', fields().with(7, [1, 2]), /\[0\]\.sequence_lengths add up to 3 of 2 tokens/],
  ['a length that is none', fields().with(7, [-1, 3]), /sequence_lengths\[0\] is -1/],
  ['too few advantages', fields().with(2, [1]), /advantages has 1 entries for 2 tokens/],
  ['several adapters', fields().with(9, [2]), /lora_num_tokens is set/],
  ['images', fields().with(11, {}), /mm_kwargs is set/],
  ['types of tokens', fields().with(12, [0, 0]), /mm_token_type_ids is set/],
  ['two environments in a sequence', fields().with(6, ['e', 'f']), /env_names\[1\] is "f" in a sequence of "e"/],
  ['too few environments', fields().with(6, ['e']), /env_names has 1 entries/],
  ['an environment that is no text', fields().with(6, ['e', 1]), /env_names\[1\] is number/],
  ['rewards that are texts', fields().with(14, ['a', 'b']), /rewards\[0\] is string/],
  ['a run that is a number', fields().with(15, 1), /run_id is number/],
  ['a step of a run that is a text', fields().with(16, 'x'), /run_step is x/],
  ['too many ids', [...fields(), null, null, 'fp32', ['a', 'b']], /sample_ids has 2 entries for 1 sequences/],
])('refused: %s', ([, batch, message]) => {
  expect(() => decodeMicroBatches(pack([batch]))).toThrow(fails('ROLLOUTS_INVALID', message))
})

test('refused: no list of micro-batches', () => {
  expect(() => decodeMicroBatches(pack({}))).toThrow(fails('ROLLOUTS_INVALID', /not a list of micro-batches/))
})

test.for<[Partial<MicroBatch>, RegExp]>([
  [{ mask: new Uint8Array(1) }, /\[0\]\.mask has 1 entries for 2 tokens/],
  [{ rewards: [] }, /rewards has 0 entries for 1 sequences/],
  [{ sequenceLengths: [1] }, /sequenceLengths add up to 1 of 2 tokens/],
  [{ routedExperts: { data: new Uint8Array(1), shape: [2], dtype: 'uint8' } }, /routedExperts of shape 2 uint8 has 1 bytes/],
])('what no reader takes is not written: %s', ([part, message]) => {
  expect(() => encodeMicroBatches([{ ...goldenMicroBatch, ...part }])).toThrow(fails('ROLLOUTS_INVALID', message))
})
