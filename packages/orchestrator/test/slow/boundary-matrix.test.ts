import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { matrixCases, runMatrixCase } from '../../src/fakes/boundary-matrix.ts'
import { fakeFileTrainer } from '../../src/fakes/file-trainer.ts'

const createRouter = () => stickyRouter.create({ config: {} } as never) as Router

it('over sockets every pair of values occurs', () => {
  const rows = matrixCases
    .filter(({ transport }) => transport === 'zmq')
    .map(({ steps, level, bound, isResume }) => [steps, level, bound, isResume])
  for (const one of [0, 1, 2, 3])
    for (const other of [0, 1, 2, 3].slice(one + 1)) {
      const values = (column: number) => new Set(rows.map((row) => row[column])).size
      expect(new Set(rows.map((row) => `${row[one]} ${row[other]}`)).size).toBe(values(one) * values(other))
    }
})

// About 14 s: mostly waiting for files. Concurrent cases.
describe('first step, last step, resume: orchestrator and trainer over the files of a run', () => {
  it.concurrent.for(matrixCases)('$transport, $steps steps, level $level, bound $bound, resumed $isResume', async (one, { expect }) => {
    const { trained, lags, version, pausedAtEnd } = await runMatrixCase(one, fakeFileTrainer, createRouter)
    const last = one.steps + (one.isResume ? 1 : 0)
    expect(trained.map(({ step, samples }) => [step, samples.length])).toEqual(Array.from({ length: last }, (_, step) => [step, 4]))
    const ids = trained.flatMap(({ samples }) => samples.map(({ id }) => id))
    expect(ids.every((id) => id !== '')).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
    expect(Math.max(...lags)).toBeLessThanOrEqual(one.level === 0 ? 0 : one.bound)
    expect(version).toBe(last)
    expect(pausedAtEnd).toBe(false)
  })

  // The trainer keeps two versions and goes on meanwhile: what it told of is there when an engine opens it.
  it.concurrent.for([2, 4])('goes on at level %i, however slow the engines are', { timeout: 60_000 }, async (level, { expect }) => {
    const one = { steps: 40, level, bound: 8, isResume: false, transport: 'filesystem' as const, engineMs: 100 }
    const { trained, version } = await runMatrixCase(one, fakeFileTrainer, createRouter)
    expect(trained.map(({ step }) => step)).toEqual(Array.from({ length: 40 }, (_, step) => step))
    expect(version).toBe(40)
  })
})
