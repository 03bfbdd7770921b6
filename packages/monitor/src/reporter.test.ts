import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LogFields, silentLogger, TrilithonError } from '@trilithon/core'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createReporter, launchingParent, type ReporterOptions } from './reporter.ts'
import { isRoleEvent, type RoleEvent } from './role-event.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-monitor-'))
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

const trained = {
  'time/step': 1.234,
  'loss/mean': 0.5,
  'entropy/all/mean': 1.25,
  'mismatch_kl/all/mean': 0,
  'optim/grad_norm': 0.75,
  'optim/lr': 0.001,
  'perf/throughput': 1234.4,
  'perf/peak_memory': 0.5,
}
const step = (number: number, values: Record<string, number> = trained): RoleEvent => ({
  kind: 'step',
  role: 'trainer',
  step: number,
  values,
})
const path = () => join(folder, 'metrics', 'trainer.jsonl')
const lines = () =>
  readFileSync(path(), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

function make(options: Partial<ReporterOptions> = {}) {
  let text = ''
  const sent: RoleEvent[] = []
  const parent = {
    connected: true,
    send(message: unknown, callback: (error: Error | null) => void) {
      sent.push(message as RoleEvent)
      setImmediate(() => callback(null))
      return true
    },
  }
  const output = {
    write: (part: string) => {
      text += part
    },
  }
  const reporter = createReporter({ role: 'trainer', file: path(), output, log: silentLogger, json: false, parent, ...options })
  return { reporter, sent, parent, text: () => text }
}

describe('a step', () => {
  it('goes into the file, to the launcher, and becomes a line in the shape of prime-rl', () => {
    const { reporter, sent, text } = make()
    reporter.report(step(3))
    expect(lines()).toEqual([{ step: 3, ...trained }])
    expect(sent).toEqual([step(3)])
    expect(text()).toMatch(
      /^\[\d\d:\d\d:\d\d\] SUCCESS \(trainer\): Step 3 \| 1\.23s \| Loss 0\.5000 \| Entropy 1\.2500 \| Mismatch KL 0\.0000 \| Grad\. Norm 0\.7500 \| LR 1\.00e-3 \| Throughput 1234 tokens\/s \| Peak Mem\. 0\.50 GiB\n$/,
    )
    // What prime-rl's own tests look for.
    expect(/Loss:?\s+(\d+\.\d{4})/.exec(text())?.[1]).toBe('0.5000')
  })

  it('of the orchestrator and an evaluation have their own columns', () => {
    const { reporter, text } = make({ role: 'orchestrator' })
    const values = {
      'time/step': 2,
      'reward/all/mean': 0.41234,
      'progress/trainable': 30,
      'progress/rollouts': 40,
      'num_turns/all/mean': 1,
      'lag/max': 2,
      'is_truncated/all/mean': 0.25,
    }
    reporter.report(step(1, values))
    reporter.report(step(2, { 'eval/reverse-text/avg@4': 0.9, 'eval/reverse-text/policy_version': 2, 'eval/sort/avg@1': 0.5 }))
    expect(text().replace(/^\[.{8}\] SUCCESS /gm, '')).toBe(
      [
        '(orchestrator): Step 1 | 2.00s | Reward 0.4123 | Trainable 30/40 (75.0%) | Turns 1.00 | Max Off-Policy 2 | Truncation 25.0%',
        '(orchestrator): Evaluated reverse-text (Step 2) | Policy v2 | Reward 0.9000',
        '(orchestrator): Evaluated sort (Step 2) | Reward 0.5000',
        '',
      ].join('\n'),
    )
  })

  it('that comes again after a resume has one line, beside the evaluation of the version that the run resumes with', () => {
    const first = make().reporter
    for (const number of [0, 1, 2]) first.report(step(number))
    first.report(step(2, { 'eval/x/avg@1': 0.5 }))
    writeFileSync(path(), `${readFileSync(path(), 'utf8')}not json\n{"step":3,"lo`)
    make({ firstStep: 2 }).reporter.report(step(2))
    expect(lines().map((line) => [line.step, 'eval/x/avg@1' in line])).toEqual([
      [0, false],
      [1, false],
      [2, true],
      [2, false],
    ])
  })

  it('that is evaluated anew after a resume has the new evaluation, and keeps those of other environments and steps', () => {
    const evaluation = (number: number, name: string, reward: number) => step(number, { [`eval/${name}/avg@1`]: reward })
    const first = make().reporter
    for (const number of [0, 1, 2]) first.report(step(number))
    first.report(evaluation(1, 'x', 0.1))
    first.report(evaluation(2, 'x', 0.2))
    first.report(evaluation(2, 'y', 0.3))
    const second = make({ firstStep: 2 }).reporter
    const rewards = () => lines().map((line) => [line.step, line['eval/x/avg@1'] ?? line['eval/y/avg@1'] ?? 'trained'])
    // Nothing is lost before the new one is there.
    expect(rewards()).toHaveLength(5)
    second.report(evaluation(2, 'x', 0.9))
    for (const number of [2, 3]) second.report(step(number))
    second.report(evaluation(4, 'x', 0.4))
    expect(rewards()).toEqual([
      [0, 'trained'],
      [1, 'trained'],
      [1, 0.1],
      [2, 0.3],
      [2, 0.9],
      [2, 'trained'],
      [3, 'trained'],
      [4, 0.4],
    ])
  })

  it('leaves out what JSON has no word for', () => {
    make().reporter.report(step(0, { loss: Number.NaN, lag: 1 }))
    expect(lines()).toEqual([{ step: 0, lag: 1 }])
  })

  it('is an error where the file cannot be written', () => {
    writeFileSync(join(folder, 'metrics'), '')
    expect(() => make()).toThrow(expect.objectContaining({ code: 'OUTPUT_UNUSABLE' }) as Error)
    try {
      make()
    } catch (error) {
      expect(TrilithonError.is(error, 'OUTPUT_UNUSABLE')).toBe(true)
    }
  })

  it('is JSON of the log where that is asked for', () => {
    const logged: [string, LogFields | undefined][] = []
    const log = { ...silentLogger, info: (message: string, fields?: LogFields) => void logged.push([message, fields]) }
    const { reporter, text } = make({ json: true, log })
    reporter.report(step(4))
    expect([text(), logged]).toEqual(['', [['step', { step: 4, ...trained }]]])
  })
})

describe('a state', () => {
  const status = (state: string): RoleEvent => ({ kind: 'status', role: 'trainer', state, values: { inflight: 1 } })

  it('is sent at most ten times per second with the seconds of all states', async () => {
    vi.useFakeTimers()
    const { reporter, sent } = make({ now: () => Date.now() })
    for (let ms = 0; ms < 1000; ms++) {
      reporter.report(status(ms % 4 < 1 ? 'waiting for a batch' : 'training'))
      vi.advanceTimersByTime(1)
    }
    expect(sent.length).toBeGreaterThan(5)
    expect(sent.length).toBeLessThanOrEqual(11)
    vi.useRealTimers()
    await reporter.close()
    const last = sent.at(-1)
    expect(last).toMatchObject({ kind: 'status', values: { inflight: 1 } })
    expect(last?.kind === 'status' && last.spent?.['waiting for a batch']).toBeCloseTo(0.25, 1)
  })

  it('is told again as a sign of life until the role ends', async () => {
    vi.useFakeTimers()
    const { reporter, sent } = make({ now: () => Date.now() })
    vi.advanceTimersByTime(7000)
    expect(sent.map((event) => event.kind === 'status' && event.spent?.starting)).toEqual([2, 4, 6])
    vi.useRealTimers()
    await reporter.close()
  })

  it('is shown in place where the role stands alone on a terminal', () => {
    let text = ''
    const output = {
      isTTY: true,
      columns: 80,
      write: (part: string) => {
        text += part
      },
    }
    const { reporter } = make({ output, parent: null })
    reporter.report(status('training'))
    void reporter.close()
    expect(text).toContain('trainer: training\n')
  })
})

it('a launcher that has gone disturbs nobody', async () => {
  const { reporter, parent, sent } = make()
  parent.connected = false
  reporter.report(step(0))
  reporter.report({ kind: 'ended', role: 'trainer' })
  await reporter.close()
  expect([sent, lines().length]).toEqual([[], 1])
})

it('a parent that is no launcher (the runner of these tests) gets nothing', () => {
  expect(launchingParent()).toBeNull()
})

it('events are told from other messages', () => {
  expect([step(1), { kind: 'ended', role: 'x' }, { kind: 'other', role: 'x' }, { kind: 'ended' }, null, 'x'].map(isRoleEvent)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ])
})
