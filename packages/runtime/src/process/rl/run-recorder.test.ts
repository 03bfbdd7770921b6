import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { RunRecorder } from './run-recorder.ts'
import { RunState } from './run-state.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-recorder-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const path = () => join(folder, 'metrics.jsonl')
const record = (firstStep: number) => {
  const recorder = new RunRecorder({ path: path(), state: new RunState(['orchestrator', 'trainer'], 9, 0), firstStep })
  return (role: string, step: number, values: Record<string, number>) => recorder.take(role, { kind: 'step', role, step, values }, 1000)
}
const lines = () =>
  readFileSync(path(), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { step: number; role: string; [key: string]: unknown })
/** Of each role and kind, the steps that it has lines of. */
const stepsOf = (role: string, key: string) => lines().flatMap((line) => (line.role === role && key in line ? [line.step] : []))

it('a run that goes on keeps the lines of batches that were shipped for steps to come, and takes those that come again', () => {
  const first = record(0)
  for (const step of [0, 1, 2, 3, 4]) first('orchestrator', step, { 'reward/all/mean': step })
  for (const step of [0, 1, 2]) first('trainer', step, { 'loss/mean': step })
  first('orchestrator', 4, { 'eval/a/avg@1': 0.3 })
  const second = record(2)
  for (const step of [2, 3, 4, 5]) second('trainer', step, { 'loss/mean': 10 + step })
  // Batch 4 had gone with its disk.
  for (const step of [4, 5]) second('orchestrator', step, { 'reward/all/mean': 10 + step })
  const rewards = lines().flatMap((line) => ('reward/all/mean' in line ? [[line.step, line['reward/all/mean']]] : []))
  expect(rewards.sort()).toEqual([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 14],
    [5, 15],
  ])
  expect(lines().flatMap((line) => (line.role === 'trainer' ? [line['loss/mean']] : []))).toEqual([0, 1, 12, 13, 14, 15])
  expect(stepsOf('orchestrator', 'eval/a/avg@1')).toEqual([])
})

it('a run that goes on has one line of each step, role and evaluation in the end', () => {
  const first = record(0)
  first('orchestrator', 0, { 'eval/a/avg@1': 0.1 })
  for (const step of [0, 1, 2]) {
    first('orchestrator', step, { 'reward/all/mean': step })
    first('trainer', step, { 'loss/mean': step })
  }
  first('orchestrator', 2, { 'eval/a/avg@1': 0.2, 'eval/a/policy_version': 2 })
  first('orchestrator', 2, { 'eval/b/avg@1': 0.3 })
  const second = record(2)
  // Killed before it was evaluated anew, it has the evaluation from before.
  expect(stepsOf('orchestrator', 'eval/a/avg@1')).toEqual([0, 2])
  second('orchestrator', 2, { 'eval/a/avg@1': 0.25, 'eval/a/policy_version': 2 })
  for (const step of [2, 3]) {
    second('orchestrator', step, { 'reward/all/mean': step })
    second('trainer', step, { 'loss/mean': step })
  }
  second('orchestrator', 4, { 'eval/a/avg@1': 0.4 })
  expect(stepsOf('orchestrator', 'eval/a/avg@1')).toEqual([0, 2, 4])
  expect(stepsOf('orchestrator', 'eval/b/avg@1')).toEqual([2])
  expect(stepsOf('orchestrator', 'reward/all/mean')).toEqual([0, 1, 2, 3])
  expect(stepsOf('trainer', 'loss/mean')).toEqual([0, 1, 2, 3])
  expect(stepsOf('launcher', 'time/wall')).toEqual([0, 1, 2, 3])
  expect(lines().find(({ step, ...values }) => step === 2 && 'eval/a/avg@1' in values)?.['eval/a/avg@1']).toBe(0.25)
})
