import { type LogFields, silentLogger } from '@trilithon/core'
import type { RoleEvent } from '@trilithon/monitor'
import { describe, expect, it } from 'vitest'
import { RlView, runLines } from './rl-view.ts'
import { RunState } from './run-state.ts'

const status = (state: string, spent: Record<string, number>, values: Record<string, number> = {}): RoleEvent => ({
  kind: 'status',
  role: '',
  state,
  values,
  spent,
})
const step = (number: number, values: Record<string, number>): RoleEvent => ({ kind: 'step', role: '', step: number, values })

function played() {
  const state = new RunState(['inference', 'orchestrator', 'trainer'], 200, 0)
  state.take('inference', status('generating', { generating: 1 }, { throughput: 1000, running: 64 }), 1000)
  state.take('trainer', status('waiting for a batch', { training: 1 }), 1000)
  state.take('orchestrator', step(0, { 'reward/all/mean': 0.25, 'lag/max': 0, 'lag/mean': 0 }), 1500)
  state.take('trainer', step(0, { 'perf/throughput': 9000, 'mismatch_kl/all/mean': 0, 'entropy/all/mean': 1.5 }), 2000)
  state.take('inference', status('generating', { generating: 2, 'waiting for requests': 1 }, { throughput: 3000, running: 32 }), 3000)
  state.take('trainer', status('waiting for a batch', { training: 1.5, 'waiting for a batch': 1.5 }, { step: 2 }), 3000)
  state.take('orchestrator', step(1, { 'reward/all/mean': 0.5, 'lag/max': 2, 'lag/mean': 0.75 }), 3500)
  state.take('orchestrator', step(1, { 'eval/reverse-text/avg@1': 0.375 }), 3600)
  state.take('trainer', step(1, { 'perf/throughput': 9000, 'mismatch_kl/all/mean': 0.0001, 'entropy/all/mean': 1.25 }), 4000)
  return state
}

describe('the block', () => {
  it('says what the run has come to and who waits for whom', () => {
    expect(runLines(played(), 4000)).toEqual([
      // 198 steps of 2 s are left.
      'rl           step 2/200  elapsed 0:04  ETA 6:36',
      'reward       0.5000 ▁█  evaluation of reverse-text at step 1: 0.3750',
      'lag          max 2  mean 0.75  mismatch KL 0.0001  entropy 1.2500',
      // 3000 in the two seconds between what the engine told.
      'tokens/s     inference 3000  trainer 9000',
      'inference    waits 33 %  generating, running 32',
      'orchestrator             starting',
      'trainer      waits 83 %  waiting for a batch, step 2',
    ])
  })

  it('begins with what is known', () => {
    expect(runLines(new RunState(['trainer'], null, 0), 0)).toEqual([
      'rl           step -  elapsed 0:00',
      'trainer                  starting',
    ])
  })
})

it('values of a step count from the step before, with the time since a state was told', () => {
  const state = played()
  // Told at 3 s: the engine had waited for 1 s of 2, the trainer for 1.5 of 2. At 4 s the engine has worked on, and the trainer waited on.
  expect(state.stepValues(4000)).toEqual({
    ...{ 'throughput/inference': 3000, 'throughput/trainer': 9000 },
    ...{ 'idle/inference': 1 / 3, 'idle/trainer': 2.5 / 3 },
  })
  state.take('inference', status('waiting for requests', { generating: 4, 'waiting for requests': 1 }, { throughput: 500 }), 5000)
  expect(state.stepValues(6000)).toEqual({
    ...{ 'throughput/inference': 500, 'throughput/trainer': 9000 },
    ...{ 'idle/inference': 0.5, 'idle/trainer': 1 },
  })
})

it('begins anew with a role that is started again, and says why in one line', () => {
  const state = played()
  const parts: string[] = []
  const view = new RlView({ output: { write: (part) => parts.push(part) > 0 }, json: null, state })
  state.restart('inference')
  const cause = 'was ended by SIGKILL; its last words: weights updated'
  view.roleRestarts('inference', { attempt: 1, limit: 3, waitMs: 1000, cause, log: 'out/logs/inference.log' })
  expect(parts.join('')).toMatch(
    /^\[[\d:]+\] WARNING \(launcher\): the inference was ended by SIGKILL; its last words: weights updated; it is started again in 1 s \(restart 1 of 3\), its log: out\/logs\/inference\.log\n$/,
  )
  expect(runLines(state, 4000)).toContain('inference                starting again')
  // What it told before it died counts no more: its times begin at nothing.
  state.take('inference', status('generating', { generating: 0.1 }, { throughput: 10 }), 9000)
  state.take('inference', status('generating', { generating: 1.1 }, { throughput: 30 }), 10_000)
  expect(state.inferenceThroughput()).toBe(30)
  expect(state.stepValues(10_000)).toMatchObject({ 'throughput/inference': 30, 'idle/inference': 0 })
})

it('shows warnings of roles', () => {
  const parts: string[] = []
  const view = new RlView({ output: { write: (part) => parts.push(part) > 0 }, json: null, state: played() })
  view.take('orchestrator', { kind: 'warning', role: 'orchestrator', message: 'nothing has come of 2 episodes' })
  expect(parts.join('')).toMatch(/^\[[\d:]+\] WARNING \(orchestrator\): nothing has come of 2 episodes\n$/)
})

it('is JSON of the log where that is asked for, and nothing else', () => {
  const logged: [string, LogFields | undefined][] = []
  const note = (message: string, fields?: LogFields) => void logged.push([message, fields])
  const json = { ...silentLogger, info: note, warn: note }
  let text = ''
  const output = {
    isTTY: true,
    write(part: string) {
      text += part
    },
  }
  const view = new RlView({ output, json, state: played() })
  view.roleStarted('trainer', 12)
  view.take('trainer', step(1, { 'loss/mean': 0.5 }))
  view.roleRestarts('inference', { attempt: 2, limit: 3, waitMs: 2000, cause: 'was ended by SIGKILL', log: 'x.log' })
  view.take('trainer', status('training', {}))
  view.take('trainer', { kind: 'warning', role: 'trainer', message: 'look' })
  view.roleEnded('trainer', { status: 0, signal: null })
  view.close()
  expect(text).toBe('')
  expect(logged).toEqual([
    ['role started', { role: 'trainer', pid: 12 }],
    ['step', { role: 'trainer', step: 1, 'loss/mean': 0.5 }],
    ['role is started again', { role: 'inference', attempt: 2, limit: 3, waitMs: 2000, cause: 'was ended by SIGKILL', log: 'x.log' }],
    ['look', { role: 'trainer' }],
    ['role ended', { role: 'trainer', status: 0, signal: null }],
  ])
})
