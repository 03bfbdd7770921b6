import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkpointSteps, type Progress, pruneCheckpoints, readCheckpoint, writeCheckpoint } from './progress.ts'
import { findProgress } from './resume.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'progress-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const progress = (step: number): Progress => ({
  ...{ format: 1, step, total_tokens: 10 * step, total_samples: step, total_problems: step, next_group: step },
  source: { draws: step, environments: { e: { epoch: 0, position: step } }, returned: [{ environment: 'e', index: 1, returns: 2 }] },
})
const shipped = (steps: readonly number[]) => ({
  lastShipped: () => steps.at(-1) ?? null,
  has: (step: number) => steps.includes(step),
  progressOf: (step: number) => progress(step + 1),
})

describe('a checkpoint', () => {
  it('comes back as it was', () => {
    writeCheckpoint(folder, progress(3))
    expect(readCheckpoint(folder, 3)).toEqual(progress(3))
    expect(readCheckpoint(folder, 4)).toBeUndefined()
    expect(readdirSync(join(folder, 'step_3', 'orchestrator'))).toEqual(['progress.json'])
  })

  it.each([
    ['cut short', '{"format":1,"st'],
    ['of another kind', '{"format":2}'],
  ])('%s is refused', (_, text) => {
    mkdirSync(join(folder, 'step_1', 'orchestrator'), { recursive: true })
    writeFileSync(join(folder, 'step_1', 'orchestrator', 'progress.json'), text)
    expect(() => readCheckpoint(folder, 1)).toThrow(expect.objectContaining({ code: 'RESUME_IMPOSSIBLE' }))
  })

  it('that cannot be written is told of', () => {
    writeFileSync(join(folder, 'step_2'), '')
    expect(() => writeCheckpoint(folder, progress(2))).toThrow(expect.objectContaining({ code: 'CHECKPOINT_WRITE_FAILED' }))
  })

  it.each([
    [null, null, [1, 2, 3, 4, 5, 6]],
    [2, null, [5, 6]],
    [1, 3, [3, 6]],
    [9, null, [1, 2, 3, 4, 5, 6]],
  ])('keeps the last %s and every %s', (keepLast, keepInterval, expected) => {
    for (const step of [1, 2, 3, 4, 5, 6]) writeCheckpoint(folder, progress(step))
    // The trainer's part is its own.
    mkdirSync(join(folder, 'step_1', 'trainer'))
    pruneCheckpoints(folder, keepLast, keepInterval)
    expect(checkpointSteps(folder)).toEqual(expected)
    expect(readdirSync(join(folder, 'step_1'))).toContain('trainer')
  })
})

describe('going on', () => {
  it.each([
    ['behind the last batch that was shipped', 2, [0, 1, 2, 3], 4],
    ['behind the batch before, where none was shipped since', 2, [0, 1], 2],
    ['behind a batch whose elders were tidied away', 2, [2, 3], 4],
    ['at the checkpoint, where no batch is left', 2, [], 2],
  ])('%s', (_, resumeStep, steps, expected) => {
    writeCheckpoint(folder, progress(2))
    expect(findProgress({ checkpoints: folder, shipped: shipped(steps), resumeStep })).toEqual({ step: 2, progress: progress(expected) })
  })

  it('-1 is the last checkpoint', () => {
    for (const step of [1, 2]) writeCheckpoint(folder, progress(step))
    expect(findProgress({ checkpoints: folder, shipped: shipped([0, 1]), resumeStep: -1 }).step).toBe(2)
    expect(findProgress({ checkpoints: folder, shipped: shipped([0, 1]), resumeStep: -1, trainerSteps: [1] }).step).toBe(1)
  })

  it.each([
    ['no checkpoint', -1, [], /There is no checkpoint/],
    ['no progress of that step', 7, [], /steps none/],
    ['a batch that is missing', 2, [0, 1, 4], /batch 2 is missing, and batch 4/],
  ])('is impossible with %s', (_, resumeStep, steps, message) => {
    expect(() => findProgress({ checkpoints: folder, shipped: shipped(steps), resumeStep })).toThrow(
      expect.objectContaining({ code: 'RESUME_IMPOSSIBLE', message: expect.stringMatching(message) }),
    )
  })
})
