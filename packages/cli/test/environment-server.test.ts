/** Serves an environment with the built command line (dist) in processes of their own: the test target builds first. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger } from '@trilithon/core'
import { createEnvironmentPool } from '@trilithon/environments'
import { createCharTokenizer } from '@trilithon/renderers'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
let folder = ''
const children: ChildProcess[] = []
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-env-server-'))
  writeFileSync(
    join(folder, 'env-server.toml'),
    `output_dir = "out"
[env]
id = "reverse-text"
address = "tcp://127.0.0.1:0"
num_workers = 2
timeout = 1
[log]
json_logging = true
interval = 0.2
`,
  )
  for (const [name, text] of Object.entries(createCharTokenizer('abcdefghijklmnop').files)) writeFileSync(join(folder, name), text)
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rmSync(folder, { recursive: true }))

function serve(...flags: string[]) {
  const child = spawn(process.execPath, [main, 'env-server', '@', 'env-server.toml', ...flags], {
    cwd: folder,
    env: { PATH: process.env.PATH, TMPDIR: folder },
  })
  children.push(child)
  const lines: Record<string, unknown>[] = []
  let error = ''
  let rest = ''
  child.stderr.on('data', (data) => {
    rest += data
    const whole = rest.split('\n')
    rest = whole.pop() ?? ''
    for (const line of whole) {
      if (line.startsWith('{')) lines.push(JSON.parse(line))
      else error += `${line}\n`
    }
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  return { child, lines, ended, error: () => error + rest, line: (message: string) => lines.find(({ msg }) => msg === message) }
}

/** Ids of processes that run this worker's entrance under that parent. */
function workersOf(parent: number | undefined): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => existsSync(`/proc/${pid}/stat`) && parentOf(pid) === parent)
    .map(Number)
}

function parentOf(pid: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1])
  } catch {
    // It ended in between.
    return 0
  }
}

test.skipIf(!existsSync('/proc/self/stat'))(
  'trilithon env-server serves until a signal and leaves no process',
  { timeout: 60_000 },
  async () => {
    const server = serve()
    await expect.poll(() => server.line('environment served'), { timeout: 30_000 }).toBeDefined()
    const address = String(server.line('environment served')?.address)
    expect(address).toMatch(/^tcp:\/\/127\.0\.0\.1:\d+$/)
    expect(readFileSync(join(folder, 'out', 'configs', 'env-server.toml'), 'utf8')).toContain('reverse-text')
    const workers = workersOf(server.child.pid)
    expect(workers).toHaveLength(2)
    const pool = await createEnvironmentPool({
      ...{ id: 'served', workers: 0, workerEntry: { file: '' }, address, log: silentLogger },
      renderer: { config: null, tokenizer: folder, model: 'x' },
    })
    expect([pool.tasks, pool.evalTasks, pool.scoring]).toEqual([null, 1024, 'rollout'])
    const result = await pool.run(
      {
        ...{
          rolloutId: 'r',
          groupId: 'g',
          taskIndex: 0,
          split: 'train',
          seed: 0,
          baseUrl: 'http://127.0.0.1:1',
          headers: {},
          salt: '0',
          session: 's',
        },
        ...{
          lease: { id: 'l', deadlineMs: null },
          model: 'm',
          sampling: { temperature: 1 },
          maxSeqLen: 64,
          apiKeyVar: null,
          wantsRoutedExperts: false,
        },
      },
      { signal: new AbortController().signal },
    )
    // The server's own timeout ends it.
    expect(result).toMatchObject({ reward: null, error: { type: 'EngineUnavailable' } })
    await pool.dispose()
    await expect.poll(() => server.lines.some(({ msg, finished }) => msg === 'serving' && finished === 1)).toBe(true)
    expect(readFileSync(join(folder, 'out', 'logs', 'env_worker_0.log'), 'utf8')).toMatch(/environment loaded/)
    server.child.kill('SIGINT')
    expect(await server.ended).toBe(130)
    expect(workers.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
    expect(readdirSync(folder).filter((name) => name.startsWith('trilithon-env-'))).toEqual([])
  },
)

test('what is wrong with an environment is said by one error', { timeout: 60_000 }, async () => {
  const server = serve('--env.args.letters=3')
  expect(await server.ended).toBe(2)
  expect(server.error()).toMatch(/ENVIRONMENT_INVALID.*env\.id/)
  expect(server.error()).toMatch(/letters/)
})
