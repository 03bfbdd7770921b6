/**
 * Budget: 180 s. A server in a process of its own under load: 256 streams at once, a thousand clients that go at random moments, thirty thousand requests. Prints what it
 * measures. Runs the built command line (dist): the test target builds first.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommandLine } from '../../src/run-command-line.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const example = fileURLToPath(new URL('../../../../examples/reverse-text/config.json', import.meta.url))
let folder = ''
let child: ChildProcess | undefined
let url = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-load-'))
  const config = { ...JSON.parse(readFileSync(example, 'utf8')), max_position_embeddings: 2048 }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  const quiet = { write: () => true }
  const argv = ['init-model', 'config.json', '--seed', '1', '--out', 'model']
  expect(await runCommandLine(argv, { workingDirectory: folder, environment: {}, stdout: quiet, stderr: quiet })).toBe(0)
  writeFileSync(join(folder, 'inference.toml'), 'output_dir = "out"\n[model]\nname = "model"\n')
  const port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0))
    })
  })
  url = `http://127.0.0.1:${port}`
  child = spawn(process.execPath, [main, 'inference', '@', 'inference.toml', `--server.port=${port}`], {
    ...{ cwd: folder, env: { PATH: process.env.PATH, TRILITHON_THREADS: '1' }, stdio: ['ignore', 'pipe', 'inherit'] },
  })
  await new Promise<void>((resolve) => child?.stdout?.on('data', (text) => String(text).includes('Serving') && resolve()))
}, 60_000)
afterAll(() => {
  child?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const generate = (body: object, signal?: AbortSignal) =>
  fetch(`${url}/inference/v1/generate`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
    ...(signal === undefined ? {} : { signal }),
  })
const promptOf = (index: number, length: number) => Array.from({ length }, (_, place) => (index * 7 + place * 3) % 20)

async function metrics(): Promise<(name: string) => number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return (name) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (.+)$`, 'm').exec(text)?.[1])
}
/** No request runs, and no block is held. */
async function idle(): Promise<void> {
  const end = performance.now() + 20_000
  for (;;) {
    const value = await metrics()
    const held = value('vllm:num_requests_running') + value('vllm:num_requests_waiting') + value('vllm:kv_cache_usage_perc')
    if (held === 0) return
    if (performance.now() > end) throw new Error(`${held} is still held`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

it('serves 256 streams at once', { timeout: 60_000 }, async () => {
  const before = await metrics()
  const started = performance.now()
  const texts = await Promise.all(
    Array.from({ length: 256 }, async (_, index) => {
      const body = { token_ids: promptOf(index, 32), sampling_params: { max_tokens: 64, ignore_eos: true, seed: index }, stream: true }
      return (await generate(body)).text()
    }),
  )
  const seconds = (performance.now() - started) / 1000
  for (const text of texts) {
    const ids = [...text.matchAll(/"token_ids":\[([^\]]+)\]/g)].flatMap(([, list]) => (list as string).split(','))
    expect(ids).toHaveLength(64)
    expect(text).toContain('data: [DONE]')
  }
  const after = await metrics()
  const spent = (name: string) => after(name) - before(name)
  const scheduler = (1e6 * spent('trilithon:scheduler_seconds_total')) / spent('trilithon:engine_steps_total')
  console.log(`256 streams: ${Math.round((256 * 64) / seconds)} tokens/s, scheduler ${Math.round(scheduler)} µs a step`)
  await idle()
})

it('holds nothing after a thousand clients that went at random moments', { timeout: 90_000 }, async () => {
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const controller = new AbortController()
        setTimeout(() => controller.abort(), Math.random() * 60)
        const body = {
          token_ids: promptOf(index, 1 + index),
          sampling_params: { max_tokens: 500, ignore_eos: true },
          stream: index % 2 === 0,
        }
        await generate(body, controller.signal)
          .then((response) => response.text())
          .catch(() => undefined)
      }),
    )
  }
  await idle()
  expect((await fetch(`${url}/load`).then((response) => response.json())) as object).toEqual({ server_load: 0 })
})

it('needs no more memory after tens of thousands of requests', { timeout: 120_000 }, async () => {
  const ask = async (count: number) => {
    for (let done = 0; done < count; done += 100)
      await Promise.all(
        Array.from({ length: 100 }, async (_, index) => {
          const body = {
            token_ids: promptOf(done + index, 20),
            sampling_params: { max_tokens: 4, ignore_eos: true },
            cache_salt: `s${done % 700}`,
          }
          await (await generate(body)).arrayBuffer()
        }),
      )
    return (await metrics())('process_resident_memory_bytes')
  }
  await ask(12_000)
  const started = performance.now()
  const resident: number[] = []
  for (let round = 0; round < 27; round++) resident.push(await ask(1000))
  const rate = 27_000 / ((performance.now() - started) / 1000)
  // Garbage comes and goes by 60 MiB, so the least of the first and of the last 9,000 requests are compared. A leak of one answer would be 80 MiB between them.
  const [before, after] = [Math.min(...resident.slice(0, 9)), Math.min(...resident.slice(-9))]
  console.log(
    `${Math.round(rate)} requests/s; resident ${Math.round(before / 2 ** 20)} MiB, ${Math.round(after / 2 ** 20)} MiB after 18,000 more requests`,
  )
  expect(after - before).toBeLessThan(40 * 2 ** 20)
})
