// @ts-check
/**
 * Processor time that a pool costs the process that owns it, per rollout and per token: engine and workers are processes of their own.
 *
 *   node packages/environments/bench/pool.mjs
 */
import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import { arch, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { silentLogger } from '@trilithon/core'
import { createEnvironmentPool, runEnvironmentWorker } from '@trilithon/environments'

const file = fileURLToPath(import.meta.url)
const [, , part] = process.argv
if (part === 'engine') serveEngine()
else if (part === 'worker') await runEnvironmentWorker(createRenderer)
else await measure()

/** One id per character, 2 ends an answer. @returns {import('@trilithon/environments').TurnRenderer} */
function createRenderer() {
  return {
    stopIds: [2],
    render: (messages) => ({
      ids: Uint32Array.from(
        messages.flatMap(({ content }) => [...content]),
        (letter) => letter.charCodeAt(0),
      ),
    }),
    extend: (previous, completion, next) => ({
      prompt: { ids: Uint32Array.from([...previous.ids, ...completion, ...createRenderer().render(next).ids]) },
    }),
    decode: (ids) => (ids.length > 100 ? '' : String.fromCharCode(...ids)),
  }
}

/** Answers at once with as many tokens as it is asked for. */
function serveEngine() {
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const { sampling_params: sampling, token_ids: prompt } = JSON.parse(Buffer.concat(chunks).toString())
      const count = sampling.max_tokens
      const tokens = Buffer.alloc(count * 16)
      for (let at = 0; at < count; at++) {
        tokens.writeUInt32LE(at === count - 1 ? 2 : 97 + (at % 16), at * 16)
        tokens.writeFloatLE(-0.5, at * 16 + 4)
      }
      const rows = 'routed_experts_prompt_start' in sampling ? prompt.length + count - 1 : 0
      const experts = Buffer.alloc(rows * 75 * 8)
      const text = Buffer.from(
        JSON.stringify({
          choices: [
            {
              index: 0,
              finish_reason: 'stop',
              tokens: { offset: 0, count },
              routed_experts: rows === 0 ? null : { offset: tokens.length, bytes: experts.length, shape: [rows, 75, 8], dtype: 'uint8' },
            },
          ],
        }),
      )
      const head = Buffer.alloc(4)
      head.writeUInt32LE(text.length)
      response.setHeader('content-type', 'application/x-trilithon-generate')
      response.end(Buffer.concat([head, text, tokens, experts]))
    })
  })
  server.listen(0, '127.0.0.1', () => process.send?.(/** @type {import('node:net').AddressInfo} */ (server.address()).port))
  process.once('disconnect', () => process.exit(0))
}

async function measure() {
  const engine = fork(file, ['engine'])
  const port = await new Promise((resolve) => engine.once('message', resolve))
  const pool = await createEnvironmentPool({
    ...{ id: 'reverse-text', workers: 1, workerEntry: { file, arguments: ['worker'] }, log: silentLogger },
    renderer: { config: null, tokenizer: '', model: '' },
  })
  /** @param {number} index @param {number} tokens @param {boolean} experts */
  const run = async (index, tokens, experts) => {
    const result = await pool.run(
      {
        ...{ rolloutId: `rollout-${index}`, groupId: 'group', taskIndex: index % 1000, split: 'train', seed: 0, headers: {}, salt: '0' },
        ...{ baseUrl: `http://127.0.0.1:${port}`, session: `s${index}`, lease: { id: 'lease', deadlineMs: 600_000 }, model: 'm' },
        ...{ sampling: { temperature: 1, max_completion_tokens: tokens }, maxSeqLen: 1e6, apiKeyVar: null, wantsRoutedExperts: experts },
      },
      { signal: new AbortController().signal },
    )
    if (result.error !== undefined) throw new Error(`${result.error.type}: ${result.error.message}`)
  }
  /** Milliseconds of processor time per rollout. @param {number} count @param {number} tokens @param {boolean} experts */
  const cost = async (count, tokens, experts) => {
    let next = 0
    const before = process.cpuUsage()
    const lane = async () => {
      while (next < count) await run(next++, tokens, experts)
    }
    await Promise.all(Array.from({ length: 64 }, lane))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / count
  }
  await cost(2000, 8, false)
  const short = await cost(10_000, 8, false)
  const long = await cost(1000, 8192, false)
  const withExperts = await cost(50, 8192, true)
  process.stdout.write(`${cpus()[0]?.model}, ${cpus().length} cores, ${arch}, Node ${process.versions.node}\n`)
  process.stdout.write(`rollout of 8 tokens: ${short.toFixed(3)} ms of processor time\n`)
  process.stdout.write(`each further token: ${(((long - short) * 1000) / 8184).toFixed(3)} µs\n`)
  process.stdout.write(`rollout of 8192 tokens with 600 bytes of experts each: ${withExperts.toFixed(2)} ms\n`)
  await pool.dispose()
  engine.disconnect()
}
