import type { EvalResult } from '@trilithon/orchestrator'
import { expect, it } from 'vitest'
import { environmentReport, reportLine } from './evaluation-report.ts'

const record = (group: string, reward: number | null, error: object | null = null) => ({ group_id: group, reward, error })
const result = (records: EvalResult['records'], values: Record<string, number>): EvalResult => ({
  ...{ step: 0, environment: 'sort', records, values },
})

it('tasks count once each in the standard error; errors are counted and nothing else', () => {
  const records = [
    ...[record('a', 1), record('a', 0)],
    ...[record('b', 1), record('b', null, { type: 'Timeout' })],
    ...[record('c', 0), record('c', 0.5)],
    ...[record('d', null, { type: 'Timeout' }), record('d', null, { type: 'Timeout' })],
  ]
  const report = environmentReport(result(records, { 'eval/sort/avg@2': 0.5, 'eval/sort/time': 2 }))
  // Means of the tasks are 0.5, 1 and 0.25: their deviation is sqrt(7/48), that of their mean sqrt(7/144).
  expect(report).toMatchObject({ name: 'sort', reward: 0.5, group_size: 2, tasks: 4, episodes: 8, errors: 3 })
  expect(report.standard_error).toBeCloseTo(Math.sqrt(7 / 144), 12)
  expect(reportLine(report)).toBe('sort  avg@2 0.5000 ± 0.2205  (4 tasks, 3 errors, 2.0 s)')
})

it('what is not known is not said', () => {
  const failed = environmentReport(result([record('a', null, { type: 'Timeout' })], {}))
  expect(failed).toMatchObject({ reward: null, standard_error: null, errors: 1 })
  expect(reportLine(failed)).toBe('sort  no episode ended without an error  (1 task, 1 error)')
  expect(environmentReport(result([record('a', 1)], { 'eval/sort/avg@1': 1 })).standard_error).toBeNull()
})
