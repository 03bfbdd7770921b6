/** Budget: 45 s. Processes that play roles, and every way in which one of them may end. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RoleEvent } from '@trilithon/monitor'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RolePlan } from '../../src/process/rl/launcher.ts'
import { createLocalLauncher, type LocalLauncherOptions } from '../../src/process/rl/local-launcher.ts'

const fake = fileURLToPath(new URL('../../src/process/rl/__fixtures__/fake-role.mjs', import.meta.url))
const roles = ['inference', 'orchestrator', 'trainer'] as const
type Behaviour = Readonly<Record<string, unknown>>

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-launch-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

interface Run {
  readonly behaviours?: Partial<Record<(typeof roles)[number], Behaviour>>
  readonly options?: LocalLauncherOptions
  readonly readyTimeoutMs?: number
  /** Processes that there are before `onEvent` is called. */
  readonly expected?: number
  readonly onEvent?: (name: string, event: RoleEvent, stop: () => void) => void
}

async function launch({ behaviours = {}, options = {}, readyTimeoutMs = 20_000, expected = 3, onEvent }: Run) {
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
      onEnd: () => undefined,
      onEvent(name, event) {
        events.push(event)
        if (haveBegun() && pids().length >= expected) onEvent?.(name, event, () => stop.abort())
      },
    })
    .catch((error: unknown) => error)
  expect(pids().filter(isAlive)).toEqual([])
  return { outcome, events, seconds: (performance.now() - begin) / 1000 }
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
function killOnce(name: string): void {
  const pid = Number(readFileSync(join(folder, `${name}.pid`), 'utf8'))
  if (killed.has(pid)) return
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
