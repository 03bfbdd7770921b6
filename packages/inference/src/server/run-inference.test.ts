import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, TrilithonError } from '@trilithon/core'
import type { RoleEvent } from '@trilithon/monitor'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFakeEngine, type FakeEngine } from '../__fixtures__/fake-engine.ts'
import { inferenceRoot } from '../configuration/index.ts'
import type { InferenceConfiguration } from '../configuration/inference-schema.ts'
import { prepareInference } from './prepare-inference.ts'
import { runInference } from './run-inference.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-run-'))
  mkdirSync(join(folder, 'model'))
  writeFileSync(join(folder, 'model', 'config.json'), '{}')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0))
    })
  })
const configOf = (changes: object) => inferenceRoot.schema.parse({ model: { name: 'model' }, ...changes }) as InferenceConfiguration
const prepare = (changes: object, environment: NodeJS.ProcessEnv = {}) =>
  prepareInference({ config: configOf(changes), workingDirectory: folder, environment })

describe('before the start', () => {
  it('says everything that is in the way at once, and changes nothing', async () => {
    const port = await freePort()
    const taken = createServer().listen(port, '0.0.0.0')
    const changes = { model: { name: 'nowhere' }, server: { host: '0.0.0.0', port, api_key_var: 'KEY' }, output_dir: 'out' }
    const error = await prepare(changes).catch((reason: unknown) => reason as TrilithonError)
    expect(TrilithonError.is(error, 'CONFIG_INVALID') && error.problems.map(({ code, path }) => [code, path])).toEqual([
      ['CONFIG_VALUE_INVALID', 'server.host'],
      ['MODEL_NOT_FOUND', 'model.name'],
      ['PORT_IN_USE', 'server.port'],
    ])
    expect(existsSync(join(folder, 'out'))).toBe(false)
    taken.close()
  })

  it('finds a port for every engine, and none beyond the last', async () => {
    // The neighbours of a free port may be taken by others.
    const attempt = async (): Promise<readonly number[]> => {
      const port = await freePort()
      return (await prepare({ server: { port }, parallel: { dp: 3 } })).ports.map((one) => one - port)
    }
    expect(await attempt().catch(attempt).catch(attempt).catch(attempt)).toEqual([0, 1, 2])
    await expect(prepare({ server: { port: 65_535 }, parallel: { dp: 2 } })).rejects.toThrow(
      expect.objectContaining({ code: 'CONFIG_VALUE_INVALID', path: 'server.port' }),
    )
  })
})

interface Run {
  readonly events: RoleEvent[]
  readonly written: string[]
  readonly running: Promise<void>
  readonly engine: FakeEngine
  readonly url: string
  readonly stop: () => Promise<void>
}

/** As the runtime does it: until the body ends or the signal comes, then newest first. */
async function start(changes: object = {}): Promise<Run> {
  const port = await freePort()
  const setup = await prepare({ server: { port }, output_dir: 'out', log: { interval: 0.05 }, ...changes })
  const engine = createFakeEngine({ stepMs: 1 })
  const [events, written]: [RoleEvent[], string[]] = [[], []]
  const disposers: (() => Promise<void>)[] = []
  const controller = new AbortController()
  const running = runInference({
    ...{ setup, role: 'inference', store: null, log: silentLogger, signal: controller.signal },
    output: { write: (text) => written.push(text) },
    reporter: { report: (event) => void events.push(event), close: async () => undefined },
    onDispose: (_, dispose) => void disposers.push(dispose),
    start: async () => engine,
  })
  running.catch(() => undefined)
  while (!events.some(({ kind }) => kind === 'ready')) await new Promise((resolve) => setTimeout(resolve, 5))
  const stop = async () => {
    controller.abort()
    for (const dispose of disposers.reverse()) await dispose()
  }
  return { events, written, running, engine, url: `http://127.0.0.1:${port}`, stop }
}

const ask = (url: string, max_tokens: number) =>
  fetch(`${url}/inference/v1/generate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token_ids: [1, 2], sampling_params: { max_tokens } }),
  })

describe('a run', () => {
  it('tells its launcher what it does, writes metrics, and ends by the signal', async () => {
    const run = await start()
    expect(run.events[0]).toMatchObject({ kind: 'ready', role: 'inference', url: run.url })
    const answer = ask(run.url, 2000)
    while (!run.events.some((event) => event.kind === 'status' && event.state === 'generating'))
      await new Promise((resolve) => setTimeout(resolve, 5))
    const startedMs = performance.now()
    await run.stop()
    await run.running
    expect(performance.now() - startedMs).toBeLessThan(1000)
    expect(((await (await answer).json()) as { choices: { finish_reason: string }[] }).choices[0]?.finish_reason).toBe('abort')
    const lines = readFileSync(join(folder, 'out', 'metrics', 'inference.jsonl'), 'utf8')
      .trim()
      .split('\n')
    const values = lines.map((line) => JSON.parse(line) as { throughput: number; running: number })
    expect(values.some(({ throughput, running }) => throughput > 0 && running === 1)).toBe(true)
    expect(run.written.join('')).toMatch(/^Serving model .*\n[\s\S]*1 running \| 0 waiting/)
  })

  it('serves nothing when the signal comes while its engine starts', async () => {
    const setup = await prepare({ server: { port: await freePort() }, output_dir: 'out' })
    const controller = new AbortController()
    const [disposed, events]: [string[], RoleEvent[]] = [[], []]
    await runInference({
      ...{ setup, role: 'inference', store: null, log: silentLogger, signal: controller.signal, output: { write: () => true } },
      reporter: { report: (event) => void events.push(event), close: async () => undefined },
      onDispose: (name) => void disposed.push(name),
      start: async () => {
        controller.abort()
        return createFakeEngine({ stepMs: 1 })
      },
    })
    expect({ disposed, events }).toEqual({ disposed: ['the engine'], events: [] })
  })

  it('ends with the cause when its engine does', async () => {
    const run = await start()
    run.engine.die(new TrilithonError('ENGINE_FAILED', 'the thread of the engine ended: out of memory'))
    await expect(run.running).rejects.toThrow(
      expect.objectContaining({ code: 'ENGINE_FAILED', message: expect.stringContaining('out of memory') }),
    )
    await run.stop()
  })

  it('ends when its metrics cannot be written', async () => {
    const run = await start()
    rmSync(join(folder, 'out'), { recursive: true })
    void ask(run.url, 50).catch(() => undefined)
    await expect(run.running).rejects.toThrow(expect.objectContaining({ code: 'OUTPUT_UNUSABLE' }))
    await run.stop()
  })
})
