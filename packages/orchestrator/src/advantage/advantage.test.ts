import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { afterAll, describe, expect, it } from 'vitest'
import { AdvantageVariants } from '../configuration/advantage-table.ts'
import { type AdvantageRollout, defaultAdvantage } from './advantage.ts'
import { createAdvantage } from './create-advantage.ts'

const rollouts = (rewards: readonly number[], lengths: readonly number[] = rewards.map(() => 1)): AdvantageRollout[] =>
  rewards.map((reward, index) => ({
    ...{ id: `r${index}`, environment: 'e', taskId: 't', turns: 1, isTruncated: false, metrics: {} },
    reward,
    completionTokens: lengths[index] ?? 0,
  }))
const plain = { length_penalty: null, length_weighted_baseline: false, normalize_by_deviation: false }
const folder = mkdtempSync(join(tmpdir(), 'advantage-'))
afterAll(() => rmSync(folder, { recursive: true }))

function close(actual: readonly number[], expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length)
  for (const [index, value] of expected.entries()) expect(actual[index]).toBeCloseTo(value, 12)
}

describe('the default advantage', () => {
  it.each([
    ['subtracts the mean', plain, [1, 0, 0, 1], [1, 1, 1, 1], [0.5, -0.5, -0.5, 0.5]],
    ['has 0 for a group of one', plain, [7], [3], [0]],
    ['penalises length', { ...plain, length_penalty: { coef: 1, gate_by_correctness: false } }, [1, 1], [10, 30], [0.1, -0.1]],
    [
      'has no penalty where nothing is right',
      { ...plain, length_penalty: { coef: 1, gate_by_correctness: false } },
      [0, 0],
      [10, 90],
      [0, 0],
    ],
    // p = 0.5: r' = 1 - 0.5 * 0.2 * 1 = 0.9 and 0 - 0.5 * 0.4 * 0 = 0.
    ['gates the penalty', { ...plain, length_penalty: { coef: 1, gate_by_correctness: true } }, [1, 0], [20, 40], [0.45, -0.45]],
    // Ungated the wrong one is penalised too: 0.9 and -0.2, mean 0.35.
    ['or does not', { ...plain, length_penalty: { coef: 1, gate_by_correctness: false } }, [1, 0], [20, 40], [0.55, -0.55]],
    // Baseline 10 / 100.
    ['weighs the baseline by length', { ...plain, length_weighted_baseline: true }, [1, 0, 0], [10, 30, 60], [0.9, -0.1, -0.1]],
    // Deviation of [1, 0, 0, 0] is sqrt(3)/4.
    [
      'divides by the deviation when asked',
      { ...plain, normalize_by_deviation: true },
      [1, 0, 0, 0],
      [1, 1, 1, 1],
      [3 ** 0.5, -1 / 3 ** 0.5, -1 / 3 ** 0.5, -1 / 3 ** 0.5],
    ],
    ['and not by nothing', { ...plain, normalize_by_deviation: true }, [0.3, 0.3, 0.3], [1, 1, 1], [0, 0, 0]],
  ])('%s', (_, options, rewards, lengths, expected) => {
    close(defaultAdvantage(options)({ rollouts: rollouts(rewards, lengths), seqLen: 100 }), expected)
  })

  it('does not divide unless asked', () => {
    expect(AdvantageVariants.parse({ type: 'default' })).toMatchObject({ normalize_by_deviation: false })
  })
})

describe('other advantages', () => {
  it('null is the bare reward', async () => {
    expect((await createAdvantage(null, folder))({ rollouts: rollouts([2, -1]), seqLen: 1 })).toEqual([2, -1])
  })

  it('a custom one gets the group and its arguments', async () => {
    writeFileSync(
      join(folder, 'mine.mjs'),
      'export const scaled = ({ rollouts }, { scale }) => rollouts.map(({ reward }) => reward * scale)',
    )
    const table = AdvantageVariants.parse({ type: 'custom', import_path: './mine.mjs#scaled', kwargs: { scale: 3 } })
    expect((await createAdvantage(table, folder))({ rollouts: rollouts([1, 0.5]), seqLen: 1 })).toEqual([3, 1.5])
  })

  it.each([
    ['absent.mjs', '', /cannot be loaded/],
    ['none.mjs', 'export const other = 1', /has no function mine; it exports other/],
    ['short.mjs', 'export const mine = () => [1]', /returned 1 numbers for 2 rollouts/],
    ['nan.mjs', 'export const mine = () => [1, NaN]', /returned NaN for rollout probe-1/],
    ['throws.mjs', 'export const mine = () => { throw new Error("no") }', /failed: no/],
  ])('%s is refused before the start', async (file, text, message) => {
    if (text !== '') writeFileSync(join(folder, file), text)
    const made = createAdvantage({ type: 'custom', import_path: `./${file}#mine`, kwargs: {} }, folder)
    const error = await made.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(TrilithonError.is(error, 'ADVANTAGE_INVALID')).toBe(true)
    expect((error as Error).message).toMatch(message)
  })
})
