/** Serves with the built command line (dist) in processes of their own: the test target builds first. */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCommandLine } from '../src/run-command-line.ts'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const example = fileURLToPath(new URL('../../../examples/reverse-text/config.json', import.meta.url))
let folder = ''
const children: ChildProcess[] = []

async function initModel(seed: number, out: string): Promise<void> {
  const quiet = { write: () => true }
  const argv = ['init-model', 'config.json', '--seed', String(seed), '--out', out]
  expect(await runCommandLine(argv, { workingDirectory: folder, environment: {}, stdout: quiet, stderr: quiet })).toBe(0)
}

/** Ports that are free now, one after the other. */
async function freePorts(count: number): Promise<number> {
  const listen = (port: number) =>
    new Promise<number | undefined>((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(undefined))
      server.listen(port, '127.0.0.1', () => {
        const address = server.address()
        server.close(() => resolve(typeof address === 'object' ? address?.port : undefined))
      })
    })
  for (;;) {
    const first = (await listen(0)) ?? 0
    const others = await Promise.all(Array.from({ length: count - 1 }, (_, index) => listen(first + 1 + index)))
    if (first > 0 && others.every((port) => port !== undefined)) return first
  }
}

interface Serving {
  readonly child: ChildProcess
  readonly output: { out: string; err: string }
  readonly ended: Promise<{ readonly status: number | null; readonly atMs: number }>
  /** Resolves when the output holds this. */
  says(text: string): Promise<void>
}

function serve(flags: readonly string[], environment: NodeJS.ProcessEnv = {}): Serving {
  const child = spawn(process.execPath, [main, 'inference', '@', 'inference.toml', ...flags], {
    cwd: folder,
    env: { PATH: process.env.PATH, TRILITHON_THREADS: '1', ...environment },
  })
  children.push(child)
  const output = { out: '', err: '' }
  child.stdout.on('data', (text) => {
    output.out += text
  })
  child.stderr.on('data', (text) => {
    output.err += text
  })
  const ended = new Promise<{ status: number | null; atMs: number }>((resolve) => {
    child.on('close', (status) => resolve({ status, atMs: performance.now() }))
  })
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  return {
    ...{ child, output, ended },
    async says(text) {
      while (!output.out.includes(text)) {
        if (hasEnded) throw new Error(`it ended: ${output.err}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
  }
}

const ask = async (port: number, body: object, headers: Record<string, string> = {}) => {
  const response = await fetch(`http://127.0.0.1:${port}/inference/v1/generate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, json: (await response.json()) as { choices: { token_ids: number[]; finish_reason: string }[] } }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-serving-'))
  // Sequences that a test can be slower than.
  const config = { ...JSON.parse(readFileSync(example, 'utf8')), max_position_embeddings: 8192 }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  await initModel(3, 'model')
  writeFileSync(
    join(folder, 'inference.toml'),
    `output_dir = "out"
enable_return_routed_experts = true
[model]
name = "model"
max_model_len = 4096
[log]
interval = 0.2
`,
  )
}, 60_000)
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('one engine', () => {
  it('serves, takes new weights, shows and writes what it does, and ends within a second', { timeout: 60_000 }, async () => {
    const port = await freePorts(1)
    const serving = serve([`--server.port=${port}`])
    await serving.says(`http://127.0.0.1:${port}`)
    const answer = await ask(port, { token_ids: [1, 2, 3], sampling_params: { max_tokens: 5, temperature: 0, ignore_eos: true } })
    expect([answer.status, answer.json.choices[0]?.token_ids.length]).toEqual([200, 5])
    await initModel(4, 'broadcasts/step_1')
    const admin = (path: string, body: object = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    await admin('/pause?mode=keep')
    expect(await (await admin('/update_weights', { weight_dir: join(folder, 'broadcasts', 'step_1') })).json()).toEqual({ status: 'ok' })
    await admin('/resume')
    await serving.says('weights v1')
    // Two requests that are far from their end, and a client that has asked for nothing yet.
    const long = Array.from({ length: 2 }, () => ask(port, { token_ids: [1], sampling_params: { max_tokens: 4000, ignore_eos: true } }))
    await serving.says('2 running')
    const stoppedMs = performance.now()
    serving.child.kill('SIGINT')
    for (const { status, json } of await Promise.all(long)) expect([status, json.choices[0]?.finish_reason]).toEqual([200, 'abort'])
    const { status, atMs } = await serving.ended
    expect(status).toBe(130)
    expect((atMs - stoppedMs) / 1000).toBeLessThan(1.5)
    const lines = readFileSync(join(folder, 'out', 'metrics', 'inference.jsonl'), 'utf8')
      .trim()
      .split('\n')
    const metrics = lines.map((line) => JSON.parse(line))
    expect(metrics.at(-1)).toMatchObject({ step: 1, version: 1, running: expect.any(Number), 'cache/use': expect.any(Number) })
    expect(readFileSync(join(folder, 'out', 'configs', 'inference.toml'), 'utf8')).toContain(`port = ${port}`)
  })

  it('ends at once by a second signal, and while it reads its model', { timeout: 30_000 }, async () => {
    const port = await freePorts(1)
    const early = serve([`--server.port=${port}`])
    await new Promise((resolve) => setTimeout(resolve, 300))
    early.child.kill('SIGINT')
    await early.ended
    const serving = serve([`--server.port=${port}`])
    await serving.says('Serving')
    void ask(port, { token_ids: [1], sampling_params: { max_tokens: 4000, ignore_eos: true } }).catch(() => undefined)
    await serving.says('1 running')
    const stoppedMs = performance.now()
    serving.child.kill('SIGINT')
    setTimeout(() => serving.child.kill('SIGINT'), 50)
    const { status, atMs } = await serving.ended
    // A signal that comes when all is done already ends the process by itself; a shell says 130 of that too.
    expect([130, null]).toContain(status)
    expect(atMs - stoppedMs).toBeLessThan(800)
  })

  it('needs a key where others reach it, and says so before it loads anything', { timeout: 30_000 }, async () => {
    const port = await freePorts(1)
    const refused = serve(['--server.host=0.0.0.0', `--server.port=${port}`])
    expect((await refused.ended).status).toBe(2)
    expect(refused.output.err).toMatch(/CONFIG_VALUE_INVALID[\s\S]*VLLM_API_KEY/)
    const serving = serve(['--server.host=0.0.0.0', `--server.port=${port}`, '--server.api-key-var=MY_KEY'], { MY_KEY: 'k1' })
    await serving.says('Serving')
    const body = { token_ids: [1], sampling_params: { max_tokens: 1 } }
    expect((await ask(port, body)).status).toBe(401)
    expect((await ask(port, body, { authorization: 'Bearer k1' })).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200)
    for (const text of [serving.output.out, serving.output.err, readFileSync(join(folder, 'out', 'configs', 'inference.toml'), 'utf8')])
      expect(text).not.toContain('k1')
  })

  it('says in one error what is missing or taken', { timeout: 30_000 }, async () => {
    const port = await freePorts(1)
    const server = createServer().listen(port, '127.0.0.1')
    const taken = serve([`--server.port=${port}`])
    expect((await taken.ended).status).toBe(2)
    expect(taken.output.err).toMatch(/^PORT_IN_USE {2}.*\n.*port \d+ of 127\.0\.0\.1 is in use/m)
    server.close()
    const missing = serve([`--server.port=${port}`, '--model.name=nowhere'])
    expect((await missing.ended).status).toBe(2)
    expect(missing.output.err.match(/MODEL_NOT_FOUND/g)).toHaveLength(1)
  })

  it('keeps KV in memory where the configuration says so', { timeout: 30_000 }, async () => {
    const port = await freePorts(1)
    const serving = serve([`--server.port=${port}`, '--kv-cache-offload.type=native', '--kv-cache-offload.cpu.num-bytes=1000000'])
    await serving.says('Serving')
    await ask(port, { token_ids: Array.from({ length: 64 }, (_, index) => index % 20), sampling_params: { max_tokens: 2 } })
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    expect(Number(/^vllm:external_prefix_cache_queries_total\S* (\d+)/m.exec(metrics)?.[1])).toBeGreaterThan(0)
  })

  it('serves token ids from a folder without tokeniser files', { timeout: 30_000 }, async () => {
    mkdirSync(join(folder, 'bare'), { recursive: true })
    for (const file of ['config.json', 'model.safetensors']) cpSync(join(folder, 'model', file), join(folder, 'bare', file))
    const port = await freePorts(1)
    const serving = serve([`--server.port=${port}`, '--model.name=bare'])
    await serving.says('Serving')
    expect((await ask(port, { token_ids: [1], sampling_params: { max_tokens: 2 } })).status).toBe(200)
    const text = await fetch(`http://127.0.0.1:${port}/tokenize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"prompt":"abc"}',
    })
    expect(text.status).toBe(400)
  })
})

describe('two engines', () => {
  it('are processes on neighbouring ports that end together', { timeout: 60_000 }, async () => {
    const port = await freePorts(2)
    const serving = serve([`--server.port=${port}`, '--parallel.dp=2', '--output-dir=two'])
    await serving.says(`inference-0 serves at http://127.0.0.1:${port}`)
    await serving.says(`inference-1 serves at http://127.0.0.1:${port + 1}`)
    const request = { token_ids: [1, 2], sampling_params: { max_tokens: 8, seed: 1, ignore_eos: true } }
    const [first, second] = await Promise.all([ask(port, request), ask(port + 1, request)])
    expect(first.json.choices[0]?.token_ids).toEqual(second.json.choices[0]?.token_ids)
    const unseeded = { token_ids: [1, 2], sampling_params: { max_tokens: 8, ignore_eos: true } }
    const [own, other] = await Promise.all([ask(port, unseeded), ask(port + 1, unseeded)])
    expect(own.json.choices[0]?.token_ids).not.toEqual(other.json.choices[0]?.token_ids)
    const stoppedMs = performance.now()
    serving.child.kill('SIGINT')
    const { status, atMs } = await serving.ended
    expect(status).toBe(130)
    expect(atMs - stoppedMs).toBeLessThan(2000)
    for (const gone of [port, port + 1]) await expect(fetch(`http://127.0.0.1:${gone}/health`)).rejects.toThrow()
    for (const name of ['inference-0', 'inference-1']) expect(existsSync(join(folder, 'two', 'metrics', `${name}.jsonl`))).toBe(true)
  })

  it('end with the cause when one of them dies', { timeout: 60_000 }, async () => {
    const port = await freePorts(2)
    const serving = serve([`--server.port=${port}`, '--parallel.dp=2', '--output-dir=dying'])
    await serving.says('inference-0 serves')
    await serving.says('inference-1 serves')
    const metrics = await (await fetch(`http://127.0.0.1:${port + 1}/metrics`)).text()
    const pid = Number(/^trilithon:process_id\S* (\d+)/m.exec(metrics)?.[1])
    process.kill(pid, 'SIGKILL')
    expect((await serving.ended).status).toBe(1)
    expect(serving.output.err).toMatch(/ROLE_ENDED[\s\S]*inference-1 was ended by SIGKILL/)
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow()
  })
})
