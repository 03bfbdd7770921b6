import { expect, it } from 'vitest'
import type { CallDeath } from './call-worker.ts'
import { Trial } from './trial.ts'

const death = (part: CallDeath['part'], held: CallDeath['held'] = null): CallDeath => ({ reason: 'it ended', part, held })
const trial = (max_retries = 0) => new Trial({ first_attempt: 0, max_retries })

it('who held the worker past its own time fails at once, whatever retries it has', () => {
  expect(trial(9).lost(death('culprit', 'own deadline'), { isAlone: false })).toMatchObject({ type: 'DeadlineExceeded' })
  expect(trial(9).lost(death('alone', 'own deadline'), { isAlone: true })).toMatchObject({ type: 'DeadlineExceeded' })
  expect(trial(9).lost(death('culprit', 'silence'), { isAlone: false })).toMatchObject({ type: 'WorkerDied' })
})

it('who held it at the deadline of another one is tried once more, alone, and costs a retry from then on', () => {
  const one = trial(1)
  expect(one.lost(death('culprit', 'other deadline'), { isAlone: false })).toBeUndefined()
  expect(one).toMatchObject({ attempt: 1, maxRetries: 2, isSuspect: true })
  expect(one.lost(death('alone', 'other deadline'), { isAlone: true })).toBeUndefined()
  expect(one.lost(death('alone', 'other deadline'), { isAlone: true })).toMatchObject({ type: 'WorkerDied' })
})

it('who ended it has its retries', () => {
  const one = trial(1)
  expect(one.lost(death('culprit'), { isAlone: false })).toBeUndefined()
  expect(one.lost(death('culprit'), { isAlone: true })).toMatchObject({ type: 'WorkerDied', message: 'no retry is left: it ended' })
})

it('who was beside runs again with all of its retries; after three times alone, and not for ever', () => {
  const one = trial()
  for (let count = 1; count <= 10; count++) {
    expect(one.lost(death('beside', 'own deadline'), { isAlone: false })).toBeUndefined()
    expect(one).toMatchObject({ attempt: count, maxRetries: count, isSuspect: count >= 3 })
  }
  expect(one.lost(death('beside'), { isAlone: false })).toMatchObject({ type: 'WorkerDied' })
})

it('where nobody knows who it was, the second time all of them run alone', () => {
  const one = trial()
  expect(one.lost(death('unknown'), { isAlone: false })).toBeUndefined()
  expect(one.isSuspect).toBe(false)
  expect(one.lost(death('unknown'), { isAlone: false })).toBeUndefined()
  expect(one.isSuspect).toBe(true)
  expect(one.lost(death('alone'), { isAlone: true })).toMatchObject({ type: 'WorkerDied' })
})

it('where every worker dies nobody who ended one is tried again, and others are', () => {
  const where = { isAlone: true, isHopeless: true }
  expect(trial(9).lost(death('culprit'), where)).toMatchObject({ type: 'WorkerDied', message: expect.stringMatching(/it ended/) })
  expect(trial(9).lost(death('alone'), where)).toMatchObject({ type: 'WorkerDied' })
  expect(trial().lost(death('beside'), { isAlone: false, isHopeless: true })).toBeUndefined()
})
