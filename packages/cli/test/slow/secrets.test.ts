/** Budget: 60 s. What a run with secrets in its environment writes and says, with the built command line (dist) and real processes. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { tinyPolicy } from '../tiny-policy.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const secrets = { VLLM_API_KEY: 'key4f81c0d7e6b2', TENANT_TOKEN: 'tenant93a5d1c8f0e7' }
let folder = ''
let server: Server | undefined

interface Ended {
  readonly status: number | null
  /** Both streams. */
  readonly text: string
  /** Of all processes of the run, read while it trained. */
  readonly commandLines: string
}

function call(argv: readonly string[], onText?: (pids: readonly string[], text: string) => void): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, TRILITHON_THREADS: '1', ...secrets }
    const child = spawn(process.execPath, [main, ...argv], { cwd: folder, env })
    let [text, commandLines] = ['', '']
    const take = (part: Buffer) => {
      text += part.toString()
      const pids = [...text.matchAll(/started as process (\d+)/g)].map(([, pid = '']) => pid)
      if (text.includes('Step 0')) for (const pid of pids) commandLines += commandLineOf(pid)
      onText?.(pids, text)
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.on('close', (status) => resolve({ status, text, commandLines }))
  })
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

/** Every file below the folder of the test, by its path. */
function written(): Map<string, Buffer> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(files.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name))]))
}

/** Where a secret stands, as it is or in base64, which has three ways to write it. */
function leaks(places: Iterable<readonly [string, Buffer | string]>): string[] {
  const forms = Object.entries(secrets).flatMap(([name, value]) => [
    [name, value] as const,
    ...['', '.', '..'].map((before) => {
      const text = Buffer.from(`${before}${value}`).toString('base64')
      return [name, text.slice(before === '' ? 0 : 4, -4)] as const
    }),
  ])
  return [...places].flatMap(([place, content]) => forms.flatMap(([name, form]) => (content.includes(form) ? [`${name} in ${place}`] : [])))
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-secrets-'))
  writeFileSync(join(folder, 'config.json'), tinyPolicy)
  writeFileSync(
    join(folder, 'rl.toml'),
    `seq_len = 64
max_steps = 3
output_dir = "out"
[model]
name = "model"
[ckpt]
interval = 1
[log]
level = "debug"
[trainer]
[orchestrator]
batch_size = 8
group_size = 4
[orchestrator.renderer]
name = "default"
[orchestrator.student.client]
headers_from_env = { X-Tenant = "TENANT_TOKEN" }
[orchestrator.train.sampling]
max_completion_tokens = 12
[[orchestrator.train.env]]
id = "reverse-text"
[orchestrator.eval]
num_examples = 4
[[orchestrator.eval.env]]
id = "reverse-text"
[inference.model]
max_model_len = 64
[inference.server]
port = 21280
`,
  )
  writeFileSync(
    join(folder, 'alone.toml'),
    `batch_size = 8
group_size = 4
seq_len = 64
max_steps = 1
output_dir = "alone/run_default"
[model]
name = "model"
[log]
level = "debug"
[renderer]
name = "default"
[client]
wait_for_ready_timeout = 20
headers_from_env = { X-Tenant = "TENANT_TOKEN" }
[[train.env]]
id = "reverse-text"
`,
  )
  expect(await call(['init-model', 'config.json', '--out', 'model', '--seed', '1'])).toMatchObject({ status: 0 })
})
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('the search finds what is there', () => {
  const key = secrets.VLLM_API_KEY
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  for (const text of [`x${key}y`, base64(`${key}abc`), base64(`1${key}abc`), base64(`12${key}abc`), base64(`Bearer ${key}`)])
    expect(leaks([['here', Buffer.from(text)]])).toContain('VLLM_API_KEY in here')
  expect(leaks([['here', 'VLLM_API_KEY']])).toEqual([])
})

describe('a key and a header from the environment', () => {
  it('are in nothing that a run writes, says or starts, while an engine dies as well', { timeout: 60_000 }, async () => {
    let isKilled = false
    const run = await call(['rl', '@', 'rl.toml', '--verbose'], (pids, text) => {
      if (isKilled || !/\(trainer\): Step 0 /.test(text)) return
      isKilled = true
      const [, engine] = /\(inference\): started as process (\d+)/.exec(text) ?? []
      expect(pids).toContain(engine)
      process.kill(Number(engine), 'SIGKILL')
    })
    expect([run.status, isKilled], run.text).toEqual([0, true])
    const files = written()
    for (const name of [
      'configs/orchestrator.toml',
      'configs/inference.toml',
      'logs/inference.log',
      'logs/orchestrator.log',
      'metrics.jsonl',
    ])
      expect(files.has(join(folder, 'out', name)), name).toBe(true)
    // The names of the variables are known, and what is in them is not.
    expect(files.get(join(folder, 'out', 'configs', 'orchestrator.toml'))?.toString()).toContain('TENANT_TOKEN')
    expect(leaks(files)).toEqual([])
    expect(leaks([['output', run.text]])).toEqual([])
    if (existsSync('/proc/self/cmdline')) expect(run.commandLines).toContain('orchestrator')
    expect(leaks([['command lines', run.commandLines]])).toEqual([])
  })

  it('go to the engine, and stay secret when it fails', { timeout: 60_000 }, async () => {
    const seen: IncomingMessage['headers'][] = []
    server = createServer((request, response) => {
      seen.push(request.headers)
      if (request.url === '/health') return response.end()
      if (request.url === '/v1/models') return response.end('{"data":[{"id":"model"}]}')
      if (request.url === '/weight_info') return response.end('{"weight_version":"0"}')
      return response.writeHead(400).end('{"error":{"message":"no"}}')
    })
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const run = await call(['orchestrator', '@', 'alone.toml', '--client.base-url', url, '--verbose'])
    expect(run.status, run.text).toBe(1)
    expect(run.text).toContain('400')
    expect(seen.some(({ authorization }) => authorization === `Bearer ${secrets.VLLM_API_KEY}`)).toBe(true)
    expect(seen.every((headers) => headers['x-tenant'] === secrets.TENANT_TOKEN)).toBe(true)
    expect(leaks([...written(), ['output', run.text]])).toEqual([])
  })

  it.each([
    ['rl', 'rl.toml'],
    ['orchestrator', 'alone.toml'],
  ])('are in no dry run of %s', async (root, file) => {
    const dry = await call([root, '@', file, '--dry-run', '--output-dir', 'dry'])
    expect(dry.status, dry.text).toBe(0)
    expect(leaks([...written(), ['output', dry.text]])).toEqual([])
  })
})
