import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sample } from '@trilithon/core'
import { failingFiles } from '@trilithon/testing'
import { describe, expect, test } from 'vitest'
import { asAsync } from '../../test/failing-transport.ts'
import { fails } from '../../test/fails.ts'
import { goldenSample } from '../../test/fake-samples.ts'
import { temporaryFolder } from '../../test/temporary-folder.ts'
import { type AsyncFiles, asyncFiles } from '../files/async-files.ts'
import { transportFiles } from '../files/transport-files.ts'
import { lastShippedStep, readProgress, rolloutStepFolder } from './rollout-folder.ts'
import { createRolloutReceiver } from './rollout-receiver.ts'
import { createRolloutSender } from './rollout-sender.ts'
import { encodeTrainingBatch } from './training-batch.ts'

const { routedExperts: _none, ...plain } = goldenSample
const plainSample: Sample = plain
const named = (id: string): Sample => ({ ...goldenSample, id })

test('batches arrive once, in order, with their expert rows', async () => {
  const rollouts = join(temporaryFolder(), 'rollouts')
  const sender = createRolloutSender(rollouts)
  const receiver = createRolloutReceiver(rollouts, 3)
  const waiting = receiver.next()
  await sender.send(4, [plainSample], { next: 5 })
  await sender.send(3, [named('a'), named('b')], { next: 4 })
  expect(await waiting).toEqual({ step: 3, samples: [named('a'), named('b')] })
  expect(await receiver.next()).toEqual({ step: 4, samples: [plainSample] })
  expect(readProgress(rollouts, 4)).toEqual({ next: 5 })
  expect(readdirSync(rolloutStepFolder(rollouts, 3))).toEqual(['progress.json', 'train_rollouts.bin', 'train_rollouts.experts.bin'])
  expect(readdirSync(rolloutStepFolder(rollouts, 4))).toEqual(['progress.json', 'train_rollouts.bin'])
  // Not read again, whatever becomes of it.
  await expect(receiver.next(AbortSignal.timeout(150))).rejects.toMatchObject({ name: 'TimeoutError' })
})

test('the last name that appears is that of the batch', async () => {
  const log: string[] = []
  const files: AsyncFiles = {
    ...asyncFiles,
    rename: (from, to) => {
      log.push(to)
      return asyncFiles.rename(from, to)
    },
  }
  const rollouts = temporaryFolder()
  await createRolloutSender(rollouts, { files }).send(0, [goldenSample], {})
  expect(log).toEqual(
    ['train_rollouts.experts.bin', 'progress.json', 'train_rollouts.bin'].map((name) => join(rolloutStepFolder(rollouts, 0), name)),
  )
})

test('a step is shipped once', async () => {
  const rollouts = temporaryFolder()
  const sender = createRolloutSender(rollouts)
  const first = sender.send(0, [goldenSample], { try: 1 })
  await expect(sender.send(0, [goldenSample], { try: 2 })).rejects.toThrow(fails('ROLLOUTS_INVALID', /step 0 is being shipped/))
  await first
  const bytes = readFileSync(join(rolloutStepFolder(rollouts, 0), 'train_rollouts.bin'))
  await expect(createRolloutSender(rollouts).send(0, [plainSample], { try: 3 })).rejects.toThrow(
    fails('ROLLOUTS_INVALID', /step 0 was shipped already/),
  )
  expect(readFileSync(join(rolloutStepFolder(rollouts, 0), 'train_rollouts.bin'))).toEqual(bytes)
  expect(readProgress(rollouts, 0)).toEqual({ try: 1 })
})

test('what the orchestrator put into the folder stays; samples that cannot be encoded leave nothing', async () => {
  const rollouts = temporaryFolder()
  const folder = rolloutStepFolder(rollouts, 0)
  mkdirSync(folder)
  writeFileSync(join(folder, 'train_rollouts.jsonl'), '{}\n')
  const sender = createRolloutSender(rollouts)
  await expect(sender.send(0, [{ ...goldenSample, mask: new Uint8Array(1) }], {})).rejects.toThrow(fails('ROLLOUTS_INVALID', /mask/))
  expect(readdirSync(folder)).toEqual(['train_rollouts.jsonl'])
  await sender.send(0, [goldenSample], {})
  expect(readdirSync(folder)).toContain('train_rollouts.jsonl')
})

test('expert rows of a sender that ended are not taken for those of the next', async () => {
  const rollouts = temporaryFolder()
  mkdirSync(rolloutStepFolder(rollouts, 0))
  writeFileSync(join(rolloutStepFolder(rollouts, 0), 'train_rollouts.experts.bin'), 'old')
  await createRolloutSender(rollouts).send(0, [plainSample], {})
  expect(existsSync(join(rolloutStepFolder(rollouts, 0), 'train_rollouts.experts.bin'))).toBe(false)
})

describe('a failure at any call', () => {
  const callsOf = async () => {
    const files = failingFiles(transportFiles, { failAt: Number.POSITIVE_INFINITY, kind: 'crash' })
    await createRolloutSender(temporaryFolder(), { files: asAsync(files) }).send(0, [goldenSample], {})
    return files.calls
  }

  test.for(['ENOSPC', 'crash'] as const)('%s: nothing is visible, and the step can be shipped again', async (kind) => {
    const calls = await callsOf()
    expect(calls).toBeGreaterThan(12)
    for (let failAt = 1; failAt <= calls; failAt++) {
      const rollouts = temporaryFolder()
      const folder = rolloutStepFolder(rollouts, 0)
      const files = asAsync(failingFiles(transportFiles, { failAt, kind }))
      await expect(createRolloutSender(rollouts, { files }).send(0, [goldenSample], {})).rejects.toThrow(
        fails('OUTPUT_UNUSABLE', kind === 'ENOSPC' ? /the disk is full/ : /the process has ended/),
      )
      expect(lastShippedStep(rollouts)).toBeNull()
      if (kind === 'ENOSPC') expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([])
      await createRolloutSender(rollouts).send(0, [named(`after ${failAt}`)], {})
      expect((await createRolloutReceiver(rollouts, 0).next()).samples).toEqual([named(`after ${failAt}`)])
    }
  })
})

describe('a receiver', () => {
  test('waits for a folder that does not exist, and ends by its signal with the reason', async () => {
    const receiver = createRolloutReceiver(join(temporaryFolder(), 'not', 'there'), 0)
    const controller = new AbortController()
    const waiting = receiver.next(controller.signal)
    await expect(receiver.next()).rejects.toThrow(fails('ROLLOUTS_INVALID', /step 0 is being waited for/))
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(receiver.next(controller.signal)).rejects.toThrow('enough')
  })

  test('sees no batch before its last rename', async () => {
    const rollouts = temporaryFolder()
    const receiver = createRolloutReceiver(rollouts, 0)
    const { bytes, experts } = encodeTrainingBatch({ step: 0, samples: [goldenSample] })
    const folder = rolloutStepFolder(rollouts, 0)
    mkdirSync(folder)
    writeFileSync(join(folder, 'train_rollouts.bin.tmp'), bytes)
    writeFileSync(join(folder, 'train_rollouts.experts.bin'), Buffer.concat(experts))
    await expect(receiver.next(AbortSignal.timeout(150))).rejects.toThrow()
    renameSync(join(folder, 'train_rollouts.bin.tmp'), join(folder, 'train_rollouts.bin'))
    expect(await receiver.next()).toEqual({ step: 0, samples: [goldenSample] })
  })

  test.for<[string, (folder: string) => void, RegExp]>([
    ['a batch cut short', (folder) => truncateSync(join(folder, 'train_rollouts.bin'), 30), /train_rollouts\.bin: is not MessagePack/],
    [
      'expert rows cut short',
      (folder) => truncateSync(join(folder, 'train_rollouts.experts.bin'), 7),
      /offset 0 with 8 bytes lies outside/,
    ],
    ['no expert rows', (folder) => renameSync(join(folder, 'train_rollouts.experts.bin'), join(folder, 'x')), /lies outside/],
    [
      'another step',
      (folder) => writeFileSync(join(folder, 'train_rollouts.bin'), encodeTrainingBatch({ step: 9, samples: [] }).bytes),
      /step is 9/,
    ],
  ])('refuses %s, and the step is still to come', async ([, damage, message]) => {
    const rollouts = temporaryFolder()
    await createRolloutSender(rollouts).send(0, [goldenSample], {})
    damage(rolloutStepFolder(rollouts, 0))
    const receiver = createRolloutReceiver(rollouts, 0)
    for (const _twice of [1, 2]) await expect(receiver.next()).rejects.toThrow(fails('ROLLOUTS_INVALID', message))
  })
})

test('the last step that was shipped is the highest with a batch', async () => {
  const rollouts = join(temporaryFolder(), 'rollouts')
  expect(lastShippedStep(rollouts)).toBeNull()
  for (const step of [0, 9, 10]) await createRolloutSender(rollouts).send(step, [plainSample], {})
  mkdirSync(rolloutStepFolder(rollouts, 11))
  writeFileSync(join(rolloutStepFolder(rollouts, 11), 'train_rollouts.bin.tmp'), 'half')
  writeFileSync(join(rollouts, 'step_12'), 'a file')
  expect(lastShippedStep(rollouts)).toBe(10)
})

test.for([
  ['', /cannot be read/],
  ['[1]', /is not an object/],
] as const)('progress "%s" is refused', ([text, message]) => {
  const rollouts = temporaryFolder()
  mkdirSync(rolloutStepFolder(rollouts, 0))
  writeFileSync(join(rolloutStepFolder(rollouts, 0), 'progress.json'), text)
  expect(() => readProgress(rollouts, 0)).toThrow(fails('ROLLOUTS_INVALID', message))
  expect(() => readProgress(rollouts, 1)).toThrow(fails('ROLLOUTS_INVALID', /cannot be read/))
})
