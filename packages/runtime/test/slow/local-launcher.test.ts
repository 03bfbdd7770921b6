/** Budget: 55 s. Processes that play roles, and every way in which one of them may end. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RoleEvent } from '@trilithon/monitor'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RolePlan, RoleRestart } from '../../src/process/rl/launcher.ts'
import { createLocalLauncher, type LocalLauncherOptions } from '../../src/process/rl/local-launcher.ts'

const fake = fileURLToPath(new URL('../../src/process/rl/__fixtures__/fake-role.mjs', import.meta.url))
const roles = ['inference', 'orchestrator', 'trainer'] as const
type Behaviour = Readonly<Record<string, unknown>>

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-launch-'))
})
afterEach(() => {
  killed.clear()
  rmSync(folder, { recursive: true })
})

interface Run {
  readonly behaviours?: Partial<Record<(typeof roles)[number], Behaviour>>
  readonly options?: LocalLauncherOptions
  readonly readyTimeoutMs?: number
  readonly restarts?: number
  /** Processes that there are before `onEvent` is called. */
  readonly expected?: number
  readonly onEvent?: (name: string, event: RoleEvent, stop: () => void) => void
}

async function launch({ behaviours = {}, options = {}, readyTimeoutMs = 20_000, restarts = 0, expected = 3, onEvent }: Run) {
  const environment = { PATH: process.env.PATH, FAKE_ROLES: JSON.stringify(behaviours), FAKE_PIDS: folder }
  const plans = roles.map(
    (name): RolePlan => ({
      name,
      purpose: name === 'inference' ? 'service' : 'work',
      command: [process.execPath, fake, name],
      environment,
      log: join(folder, `${name}.log`),
    }),
  )
  const stop = new AbortController()
  const events: RoleEvent[] = []
  const started: { readonly name: string; readonly pid: number; readonly atMs: number }[] = []
  const restarted: (RoleRestart & { readonly name: string })[] = []
  // Everybody has begun, so that nobody is spared for being late.
  const haveBegun = () =>
    roles.slice(1).every((role) => events.some((event) => event.kind === 'step' && event.role === role && event.step >= 0))
  const begin = performance.now()
  const outcome = await createLocalLauncher({ graceMs: 500, ...options })
    .launch({
      roles: plans,
      workingDirectory: folder,
      signal: stop.signal,
      readyTimeoutMs,
      restarts,
      onStart: (name, pid) => started.push({ name, pid, atMs: performance.now() }),
      onRestart: (name, restart) => restarted.push({ name, ...restart }),
      onEnd: () => undefined,
      onEvent(name, event) {
        events.push(event)
        if (haveBegun() && pids().length >= expected) onEvent?.(name, event, () => stop.abort())
      },
    })
    .catch((error: unknown) => error)
  expect([...pids(), ...started.map(({ pid }) => pid)].filter(isAlive)).toEqual([])
  return { outcome, events, started, restarted, seconds: (performance.now() - begin) / 1000 }
}

const pids = () => readdirSync(folder).flatMap((name) => (name.endsWith('.pid') ? [Number(readFileSync(join(folder, name), 'utf8'))] : []))
const log = (name: string) => readFileSync(join(folder, `${name}.log`), 'utf8')

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A process that nobody has waited for yet has ended all the same.
    return !/^State:\s+Z/m.test(existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '')
  } catch {
    return false
  }
}

const killed = new Set<number>()
/** Kills each process of a role once, or only its first ones. */
function killOnce(name: string, most = Number.POSITIVE_INFINITY): void {
  const pid = Number(readFileSync(join(folder, `${name}.pid`), 'utf8'))
  if (killed.has(pid) || killed.size >= most) return
  killed.add(pid)
  process.kill(pid, 'SIGKILL')
}

describe('a run', () => {
  it('is over when all that work have ended, and services are ended last', async () => {
    const { outcome, events } = await launch({ behaviours: { trainer: { steps: 5, child: true } } })
    expect(outcome).toBe('done')
    const steps = (role: string) => events.flatMap((event) => (event.kind === 'step' && event.role === role ? [event.step] : []))
    expect([steps('orchestrator'), steps('trainer')]).toEqual([
      [0, 1, 2],
      [0, 1, 2, 3, 4],
    ])
    expect([log('inference'), log('trainer')].map((text) => text.includes('asked to end'))).toEqual([true, false])
    // What is not JSON arrives as it is.
    expect(events.find((event) => event.kind === 'step' && event.role === 'trainer')).toMatchObject({ values: { 'loss/mean': Number.NaN } })
  })

  it.each(roles)('ends within seconds when the %s is killed, and leaves nothing behind', async (name) => {
    const behaviours = Object.fromEntries(roles.map((role) => [role, { steps: 1e6, child: true }]))
    const { outcome, seconds } = await launch({
      behaviours,
      expected: 6,
      onEvent(from, event) {
        if (from === 'trainer' && event.kind === 'step' && event.step >= 2) killOnce(name)
      },
    })
    expect(outcome).toMatchObject({ code: 'ROLE_ENDED', message: expect.stringContaining(`the ${name} was ended by SIGKILL`) })
    expect(outcome).toMatchObject({ hint: `Read ${name}.log.`, details: { role: name, signal: 'SIGKILL' } })
    expect(pids()).toHaveLength(6)
    expect(seconds).toBeLessThan(5)
  })

  it.each(roles)('ends with what the %s threw', async (name) => {
    const { outcome } = await launch({
      behaviours: { orchestrator: { steps: 1e6 }, trainer: { steps: 1e6 }, [name]: { does: 'throw', steps: 1e6 } },
    })
    expect(outcome).toMatchObject({ code: 'ROLE_ENDED', exitStatus: 1, details: { status: 1 } })
    expect((outcome as Error).message).toBe(`the ${name} ended with exit status 1; its last words: Error: ${name} broke`)
    expect(log(name)).toContain('    at ')
  })

  it('ends with the error that a role reports, its hint and its log', async () => {
    const { outcome } = await launch({ behaviours: { orchestrator: { steps: 1e6 }, trainer: { does: 'fail' } } })
    expect(outcome).toMatchObject({
      code: 'ROLE_ENDED',
      message: 'the trainer failed with WEIGHTS_INVALID: tensor x is NaN',
      hint: 'Look at it. The log: trainer.log.',
      cause: { code: 'WEIGHTS_INVALID' },
    })
  })

  it('names a death rather than the errors that follow from it', async () => {
    const { outcome } = await launch({
      behaviours: { orchestrator: { steps: 1e6 }, trainer: { steps: 1e6, at: 40, does: 'fail' } },
      onEvent(from, event) {
        if (from === 'trainer' && event.kind === 'step' && event.step === 38) killOnce('inference')
      },
    })
    expect(outcome).toMatchObject({ details: { role: 'inference' } })
  })

  it('a service that ends in order before the run is over is a failure too', async () => {
    const { outcome } = await launch({ behaviours: { inference: { does: 'exit' }, orchestrator: { steps: 1e6 } } })
    expect(outcome).toMatchObject({ message: expect.stringContaining('the inference ended before the run was over') })
  })
})

describe('a service that dies after it was ready', () => {
  const starts = ({ started }: Awaited<ReturnType<typeof launch>>, of: string) => started.filter(({ name }) => name === of)
  const backOffMs = 50

  it('is started again, and the run goes on with the other roles as they are', async () => {
    const run = await launch({
      behaviours: { inference: { child: true }, orchestrator: { steps: 40 }, trainer: { steps: 40 } },
      ...{ restarts: 1, expected: 4, options: { backOffMs } },
      onEvent(from, event) {
        if (from === 'trainer' && event.kind === 'step' && event.step >= 2) killOnce('inference', 1)
      },
    })
    expect(run.outcome).toBe('done')
    expect(roles.map((name) => starts(run, name).length)).toEqual([2, 1, 1])
    expect(run.restarted).toEqual([
      {
        name: 'inference',
        attempt: 1,
        limit: 1,
        waitMs: backOffMs,
        cause: expect.stringContaining('was ended by SIGKILL'),
        log: 'inference.log',
      },
    ])
    const steps = run.events.flatMap((event) => (event.kind === 'step' && event.role === 'trainer' ? [event.step] : []))
    expect(steps).toEqual(Array.from({ length: 40 }, (_, index) => index))
    // Both processes wrote to one log, and the second was ended in order.
    expect(log('inference').match(/inference starts/g)).toHaveLength(2)
    expect(log('inference')).toContain('asked to end')
  })

  it('again and again ends the run with its cause: ever later, and not more often than it may', async () => {
    const forever = { steps: 1e6 }
    const run = await launch({
      behaviours: { inference: { does: 'throw', at: 2 }, orchestrator: forever, trainer: forever },
      ...{ restarts: 2, options: { backOffMs } },
    })
    expect(run.outcome).toMatchObject({
      code: 'ROLE_ENDED',
      message: expect.stringMatching(/the inference ended with exit status 1; .*inference broke/),
    })
    expect(run.restarted.map(({ attempt, limit, waitMs }) => [attempt, limit, waitMs])).toEqual([
      [1, 2, backOffMs],
      [2, 2, 2 * backOffMs],
    ])
    expect(starts(run, 'inference')).toHaveLength(3)
  })

  it('begins the count anew when it served for long enough', async () => {
    const run = await launch({
      behaviours: { inference: { does: 'throw', at: 2 }, orchestrator: { steps: 60 }, trainer: { steps: 60 } },
      ...{ restarts: 1, options: { backOffMs, steadyMs: 1 } },
    })
    expect(run.outcome).toBe('done')
    expect(run.restarted.length).toBeGreaterThan(2)
    expect(new Set(run.restarted.map(({ attempt }) => attempt))).toEqual(new Set([1]))
  })

  it.each([
    ['could not start', { does: 'throw', at: 0, stepMs: 0, isReady: false }],
    ['refuses what it was told', { does: 'refuse', at: 2 }],
    ['ends in order', { does: 'exit', at: 2 }],
  ])('is not started again where it %s', async (_, inference) => {
    const forever = { steps: 1e6 }
    const run = await launch({ behaviours: { inference, orchestrator: forever, trainer: forever }, restarts: 3, options: { backOffMs } })
    expect(run.outcome).toMatchObject({ code: 'ROLE_ENDED', details: { role: 'inference' } })
    expect(run.restarted).toEqual([])
    expect(starts(run, 'inference')).toHaveLength(1)
  })

  it('is named rather than what fails without it', async () => {
    const run = await launch({
      behaviours: { inference: { does: 'throw', at: 2 }, orchestrator: { does: 'fail', at: 20, steps: 1e6 }, trainer: { steps: 1e6 } },
      ...{ restarts: 1, options: { backOffMs: 60_000 } },
    })
    expect(run.outcome).toMatchObject({ details: { role: 'orchestrator' } })
    const consequence = await launch({
      behaviours: {
        inference: { does: 'throw', at: 2 },
        orchestrator: { does: 'fail', code: 'ENGINE_FAILED', at: 20, steps: 1e6 },
        trainer: { steps: 1e6 },
      },
      ...{ restarts: 1, options: { backOffMs: 60_000 } },
    })
    expect(consequence.outcome).toMatchObject({ details: { role: 'inference' } })
    expect(consequence.seconds).toBeLessThan(5)
  })

  it('is not started again by a run that is asked to end', async () => {
    const run = await launch({
      behaviours: { inference: { does: 'throw', at: 2 }, orchestrator: { steps: 1e6 }, trainer: { steps: 1e6 } },
      ...{ restarts: 3, options: { backOffMs: 400 } },
      onEvent(from, event, stop) {
        if (from === 'trainer' && event.kind === 'step' && event.step >= 6) stop()
      },
    })
    expect(run.outcome).toBe('interrupted')
    expect(starts(run, 'inference')).toHaveLength(1)
  })

  it('is killed where it hangs, and started again', async () => {
    const run = await launch({
      behaviours: { inference: { does: 'busy', at: 2 }, orchestrator: { steps: 60, stepMs: 50 }, trainer: { steps: 60, stepMs: 50 } },
      ...{ restarts: 1, options: { backOffMs, silenceMs: 600 } },
    })
    expect(run.restarted[0]).toMatchObject({ cause: expect.stringContaining('gave no sign of life for 0.6 s') })
  })
})

describe('a stop', () => {
  const forever = { orchestrator: { steps: 1e6 }, trainer: { steps: 1e6 } }
  const atStep = (from: string, event: RoleEvent, stop: () => void) => {
    if (from === 'trainer' && event.kind === 'step' && event.step >= 2) stop()
  }

  it('is an orderly end of every role', async () => {
    const { outcome, seconds } = await launch({ behaviours: forever, onEvent: atStep })
    expect(outcome).toBe('interrupted')
    expect(roles.map((name) => log(name).includes('asked to end'))).toEqual([true, true, true])
    expect(seconds).toBeLessThan(5)
  })

  it.each(['hang', 'busy'])('kills a role that does not end (%s)', async (does) => {
    const behaviours = { orchestrator: { steps: 1e6, does, at: 1, child: true }, trainer: { steps: 1e6 } }
    const { outcome, seconds } = await launch({ behaviours, expected: 4, onEvent: atStep })
    expect(outcome).toBe('interrupted')
    expect(pids()).toHaveLength(4)
    expect(seconds).toBeLessThan(5)
  })
})

describe('a role that is lost', () => {
  const forever = { steps: 1e6 }

  it('is found by its silence', async () => {
    const { outcome } = await launch({
      behaviours: { orchestrator: { ...forever, does: 'busy', at: 5 }, trainer: forever },
      options: { silenceMs: 700 },
    })
    expect(outcome).toMatchObject({
      code: 'ROLE_ENDED',
      message: expect.stringContaining('the orchestrator gave no sign of life for 0.7 s'),
    })
  })

  it('is found when it is never ready', async () => {
    const { outcome } = await launch({
      behaviours: { inference: { does: 'never-ready' }, orchestrator: forever, trainer: forever },
      readyTimeoutMs: 700,
    })
    expect(outcome).toMatchObject({ message: expect.stringContaining('the inference was not ready within 0.7 s') })
  })

  it('is found when it cannot be started', async () => {
    const plan = {
      name: 'trainer',
      purpose: 'work',
      command: [join(folder, 'nothing')],
      environment: {},
      log: join(folder, 'x.log'),
    } as const
    const outcome = await createLocalLauncher()
      .launch({
        roles: [plan],
        workingDirectory: folder,
        signal: new AbortController().signal,
        readyTimeoutMs: 1000,
        onEnd: () => undefined,
        onEvent: () => undefined,
      })
      .catch((error: unknown) => error)
    expect(outcome).toMatchObject({
      code: 'ROLE_ENDED',
      message: expect.stringMatching(/the trainer failed with TASK_FAILED: .*nothing cannot be started/),
    })
  })
})
