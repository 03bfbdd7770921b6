import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request as the engine saw it. */
export interface SeenRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: {
    readonly model: string
    readonly token_ids: number[]
    readonly sampling_params: Record<string, unknown>
    readonly cache_salt?: string
    readonly [key: string]: unknown
  }
}

export interface FakeEngineOptions {
  readonly dialect?: 'binary' | 'vllm-0.32' | 'vllm-0.22'
  /** Ids that are sampled for a prompt; a function of it alone unless a test wants otherwise. */
  readonly sample?: (promptIds: number[], request: SeenRequest['body']) => number[]
  readonly version?: number
  /** `[rows, layers, topK]` are sent where asked for. */
  readonly experts?: { readonly layers: number; readonly topK: number }
  readonly delayMs?: number
}

/** What happens to the next requests in place of an answer. */
export type Trouble = 'disconnect' | 'hang' | 'cut' | number | { readonly status: number; readonly body: string } | { readonly answer: unknown }

export interface FakeEngine {
  readonly url: string
  readonly requests: SeenRequest[]
  /** Consumed one per request. */
  readonly troubles: Trouble[]
  /** Status of every request until it is null. */
  outage: number | null
  /** Requests whose asker went away before the answer. */
  readonly aborted: () => number
  options: FakeEngineOptions
  close(): Promise<void>
}

export const logprobOf = (id: number) => Math.fround(-0.1 - (id % 7) / 10)

/** Speaks `/inference/v1/generate` in our dialect and in those of vLLM. */
export async function startFakeEngine(options: FakeEngineOptions = {}): Promise<FakeEngine> {
  let aborted = 0
  const requests: SeenRequest[] = []
  const troubles: Trouble[] = []
  const server = createServer((request, response) => void serve(request, response))
  const engine: FakeEngine = {
    url: '',
    requests,
    troubles,
    outage: null,
    aborted: () => aborted,
    options,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as SeenRequest['body']
    requests.push({ headers: request.headers, body })
    response.on('close', () => {
      if (!response.writableEnded) aborted++
    })
    if (engine.outage !== null) return void response.writeHead(engine.outage).end('away')
    const trouble = troubles.shift()
    if (trouble === 'disconnect') return void request.socket.destroy()
    if (trouble === 'hang') return
    if (typeof trouble === 'number') return void response.writeHead(trouble).end('trouble')
    if (typeof trouble === 'object' && 'status' in trouble) return void response.writeHead(trouble.status).end(trouble.body)
    if (engine.options.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, engine.options.delayMs))
    const isBinary = (engine.options.dialect ?? 'binary') === 'binary'
    const type = isBinary ? 'application/x-trilithon-generate' : 'application/json'
    const bytes =
      typeof trouble === 'object' ? Buffer.from(JSON.stringify(trouble.answer)) : isBinary ? binaryAnswer(engine.options, body) : jsonAnswer(engine.options, body)
    response.writeHead(200, { 'content-type': typeof trouble === 'object' ? 'application/json' : type, 'content-length': bytes.length })
    if (trouble === 'cut') {
      response.write(bytes.subarray(0, bytes.length >> 1))
      setTimeout(() => request.socket.destroy(), 10)
    } else response.end(bytes)
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(engine, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

function sampled({ sample }: FakeEngineOptions, body: SeenRequest['body']) {
  const stopIds = body.sampling_params.stop_token_ids as number[]
  const all = (sample ?? (() => [100, 101, 2]))(body.token_ids, body)
  const limit = body.sampling_params.max_tokens as number
  const ids = all.slice(0, limit)
  return { ids, reason: stopIds.includes(ids.at(-1) ?? -1) ? 'stop' : 'length' }
}

/** Each row says which token it belongs to, so that a test sees whether rows were moved. */
export function expertRows(ids: readonly number[], { layers, topK }: { layers: number; topK: number }): Uint8Array {
  const rows = ids.length - 1
  return Uint8Array.from({ length: rows * layers * topK }, (_, at) => ((ids[Math.floor(at / (layers * topK))] ?? 0) + at) % 251)
}

function binaryAnswer(options: FakeEngineOptions, body: SeenRequest['body']): Buffer {
  const { ids, reason } = sampled(options, body)
  const version = options.version ?? 3
  const tokens = Buffer.alloc(ids.length * 16)
  for (const [at, id] of ids.entries()) {
    tokens.writeUInt32LE(id, at * 16)
    tokens.writeFloatLE(logprobOf(id), at * 16 + 4)
    tokens.writeUInt32LE(version + (at % 2), at * 16 + 8)
    tokens.writeUInt32LE(version, at * 16 + 12)
  }
  const experts = options.experts === undefined ? undefined : expertRows([...body.token_ids, ...ids], options.experts)
  // Rows before tokens, at an odd offset: nothing may depend on order or alignment.
  const pad = Buffer.alloc(3)
  const expertBytes = experts ?? new Uint8Array()
  const head = {
    request_id: 'x',
    choices: [
      {
        index: 0,
        finish_reason: reason,
        tokens: { offset: pad.length + expertBytes.length, count: ids.length },
        routed_experts:
          experts === undefined || options.experts === undefined
            ? null
            : {
                offset: pad.length,
                bytes: expertBytes.length,
                shape: [body.token_ids.length + ids.length - 1, options.experts.layers, options.experts.topK],
                dtype: 'uint8',
              },
      },
    ],
  }
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length)
  return Buffer.concat([length, text, pad, expertBytes, tokens])
}

function jsonAnswer(options: FakeEngineOptions, body: SeenRequest['body']): Buffer {
  const { ids, reason } = sampled(options, body)
  const { version = 3, experts } = options
  const rows = experts === undefined ? null : expertRows([...body.token_ids, ...ids], experts)
  const shape = [body.token_ids.length + ids.length - 1, experts?.layers ?? 0, experts?.topK ?? 0]
  const old = options.dialect === 'vllm-0.22'
  const choice = {
    index: 0,
    logprobs: {
      content: ids.map((id) =>
        old
          ? { token: `token_id:${id}`, logprob: logprobOf(id), bytes: null, top_logprobs: [] }
          : { token_id: id, logprob: logprobOf(id), rank: 1, top_logprobs: [] },
      ),
    },
    finish_reason: reason,
    token_ids: ids,
    routed_experts: rows === null ? null : old ? npy(rows, shape) : { data: Buffer.from(rows).toString('base64'), shape, start: 0 },
    ...(old ? {} : { stop_reason: null, sampling_mask: null, weight_versions: [{ version: String(version), start: 0, end: ids.length }] }),
  }
  return Buffer.from(JSON.stringify({ request_id: 'x', choices: [choice], prompt_logprobs: null, kv_transfer_params: null }))
}

/** Version 1.0 of NumPy's format. */
function npy(rows: Uint8Array, shape: readonly number[]): string {
  const header = `{'descr': '|u1', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`
  const padded = `${header.padEnd(117, ' ')}\n`
  const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length & 255, padded.length >> 8])
  return Buffer.concat([start, Buffer.from(padded, 'latin1'), rows]).toString('base64')
}
