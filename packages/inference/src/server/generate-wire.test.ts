import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCharTokenizer, createTemplateRenderer, loadTokenizer } from '@trilithon/renderers'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { playRecorded, type RecordedAnswer } from '../__fixtures__/play-recorded.ts'
import { type FakeService, startFake } from '../__fixtures__/start-fake.ts'

const wire = join(import.meta.dirname, '..', '__fixtures__', 'wire')
interface Exchange {
  readonly request: { readonly method: string; readonly path: string; readonly headers: Record<string, string>; readonly body: unknown }
  readonly status: number
  readonly headers: Record<string, string>
  readonly response: unknown
}
const recorded = (name: string): Exchange => JSON.parse(readFileSync(join(wire, `${name}.json`), 'utf8'))

/** What ours has beside vLLM's. */
const additions = ['context_versions']
/** What is another value in every start, machine or implementation, and what it has to look like all the same. */
const masks: Readonly<Record<string, RegExp>> = {
  created: /^1\d{9}$/,
  weight_version: /^(default|\d+)$/,
  version: /^(default|\d+|0\.32\.0(\+trilithon)?)$/,
  owned_by: /^(vllm|trilithon)$/,
  root: /^.+$/,
  message: /^.*$/,
}
/** Ids that the server makes up, whole. */
const madeUp = /^(generate-tokens|modelperm)-[0-9a-f]{16}$/

/** A value as it is, but for additions of ours and what is masked: that is checked to look right, and is then equal. */
function masked(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => masked(item))
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([name]) => !additions.includes(name))
    return Object.fromEntries(entries.map(([name, item]) => [name, isForeign(key, name) ? 'any text' : masked(item, name)]))
  }
  const mask = masks[key]
  if (mask !== undefined) {
    expect(String(value), key).toMatch(mask)
    return mask.source
  }
  return typeof value === 'string' && madeUp.test(value) ? madeUp.source : value
}
/** Texts of ids that our tokeniser has not, or has otherwise: it has printable ASCII without the space. */
const isForeign = (id: string, name: string) => /^\d+$/.test(id) && name === 'decoded_token' && (Number(id) < 3 || Number(id) > 96)
const alphabet = Array.from({ length: 93 }, (_, index) => String.fromCharCode(34 + index)).join('')

let service: FakeService
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-wire-'))
  for (const [name, content] of Object.entries(createCharTokenizer(alphabet, '!').files)) writeFileSync(join(folder, name), content)
  const tokenizer = loadTokenizer(folder)
  rmSync(folder, { recursive: true })
  service = await startFake({ stepMs: 0 }, { text: { tokenizer, renderer: createTemplateRenderer(tokenizer) } })
})
afterAll(() => service.close())

async function replay({ request }: Exchange): Promise<Response> {
  const { method, path, headers, body } = request
  if (method === 'GET') return service.get(path, { headers })
  return service.post(path, body ?? undefined, {
    headers: body === null ? headers : { ...headers, 'content-type': 'application/json' },
  })
}
const typeOf = (response: Response) => response.headers.get('content-type')?.replace(/; charset=utf-8$/, '')

/** Exchanges whose answers are the recorded ones, value by value. */
const compared = [
  ...['generate', 'generate_n2', 'generate_no_max', 'priority_fcfs', 'dp_rank_header', 'models', 'version', 'tokenize', 'detokenize'],
  ...['get_health', 'get_ping', 'get_load', 'get_is_paused', 'get_get_world_size', 'get_weight_info', 'get_weight_version'],
  ...['pause_keep', 'pause_twice', 'resume', 'abort', 'reset_prefix_cache'],
]
const refused = ['generate_bad_empty', 'generate_bad_vocab', 'generate_empty_salt', 'pause_bogus']
/** Those with a test of their own here, and those that cannot be replayed, with the reason. */
const others: Readonly<Record<string, string>> = {
  generate_stream: 'below',
  g_inflight_abort: 'below',
  weight_checksum: 'above',
  generate_bad_long: 'its body is not recorded whole',
  tokenize_chat: 'its chat template is not that of our tokeniser',
  bad_model: 'is of a route that we do not have',
  update_weight_version: 'a version is no label here',
  generate_schema: 'no exchange',
  metric_types: 'no exchange',
}
interface Refusal {
  readonly error: { readonly type: string; readonly code: number }
}

describe('answers as vLLM 0.32 does', () => {
  test.each(compared)('%s', async (name) => {
    const exchange = recorded(name)
    const theirs = exchange.response as RecordedAnswer
    if (exchange.request.path.endsWith('/generate') && exchange.status === 200) playRecorded(service.engine, [theirs])
    const response = await replay(exchange)
    const text = await response.text()
    expect(response.status, text).toBe(exchange.status)
    expect(typeOf(response)).toBe(exchange.headers['content-type'])
    if (exchange.response === '') expect(text).toBe('')
    else expect(masked(JSON.parse(text))).toEqual(masked(theirs))
    await service.post('/resume')
  })

  it('refuses with its keys, type and code', async () => {
    for (const name of refused) {
      const exchange = recorded(name)
      const response = await replay(exchange)
      expect(response.status).toBe(400)
      const [ours, theirs] = [(await response.json()) as Refusal, exchange.response as Refusal]
      expect(Object.keys(ours.error)).toEqual(Object.keys(theirs.error))
      // It has two spellings of the type, by who finds the fault.
      expect(['BadRequestError', 'Bad Request']).toContain(theirs.error.type)
      expect(ours.error).toMatchObject({ type: 'BadRequestError', code: theirs.error.code })
    }
  })

  it('has a checksum of each tensor under a name', async () => {
    const theirs = recorded('weight_checksum')
    const response = await replay(theirs)
    expect(response.status).toBe(200)
    for (const answer of [await response.json(), theirs.response] as { checksums: Record<string, string> }[]) {
      expect(Object.keys(answer)).toEqual(['checksums'])
      for (const [name, checksum] of Object.entries(answer.checksums))
        expect([name, checksum].join()).toMatch(/\b(model\.|lm_head\.)\S*weight,[0-9a-f]{64}$/)
    }
  })

  it('names the field of a refusal at the end of `param`, as it does', async () => {
    for (const [name, field] of [
      ['generate_bad_empty', 'token_ids'],
      ['generate_empty_salt', 'cache_salt'],
      ['pause_bogus', 'query.mode'],
    ] as const) {
      const { error } = (await (await replay(recorded(name))).json()) as { error: Record<string, unknown> }
      expect(error).toMatchObject({ param: field, code: 400 })
      expect((recorded(name).response as { error: { param: string } }).error.param).toContain(field)
    }
  })

  it('streams the same chunks, the last one with what belongs to the whole', async () => {
    const exchange = recorded('generate_stream')
    const parse = (text: string): RecordedAnswer[] =>
      text
        .trimEnd()
        .split('\n\n')
        .map((event) => (event === 'data: [DONE]' ? event : JSON.parse(event.replace(/^data: /, ''))))
    const theirs = parse(exchange.response as string)
    expect(theirs.at(-1)).toBe('data: [DONE]')
    playRecorded(service.engine, theirs.slice(0, -1))
    const response = await replay(exchange)
    expect(response.headers.get('content-type')).toBe(exchange.headers['content-type'])
    const ours = parse(await response.text())
    expect(ours.map((chunk) => masked(chunk))).toEqual(theirs.map((chunk) => masked(chunk)))
  })

  it('answers an aborted request with what it has', async () => {
    const exchange = recorded('g_inflight_abort')
    const slow = await startFake({ stepMs: 2 })
    const answer = slow.post('/inference/v1/generate', exchange.request.body)
    while (slow.engine.stats().generatedTokens < 5) await new Promise((resolve) => setTimeout(resolve, 2))
    expect(await (await slow.post('/pause?mode=abort')).json()).toEqual({ status: 'paused' })
    const response = await answer
    const json = (await response.json()) as { choices: { finish_reason: string; token_ids: number[] }[] }
    expect(response.status).toBe(200)
    expect(json.choices[0]?.finish_reason).toBe('abort')
    expect(json.choices[0]?.token_ids.length).toBeGreaterThanOrEqual(5)
    await slow.close()
    playRecorded(service.engine, [exchange.response as RecordedAnswer])
    expect(masked(await (await replay(exchange)).json())).toEqual(masked(exchange.response))
  })

  it('has its own names of routes among those of vLLM, but for what prime-rl adds', async () => {
    const { paths } = JSON.parse(readFileSync(join(wire, 'generate_schema.json'), 'utf8')) as { paths: string[] }
    const own = ['GET /liveness']
    for (const path of own) expect(paths).not.toContain(path)
    for (const [method, path] of [
      ['POST', '/inference/v1/generate'],
      ['POST', '/start_weight_update'],
      ['POST', '/tokenize'],
      ['POST', '/weight_checker'],
      ['POST', '/update_weight_version'],
    ] as const) {
      expect(paths).toContain(`${method} ${path}`)
      expect((await service.post(path, {})).status).toBe(400)
    }
  })

  it('knows every recorded exchange in this folder', () => {
    const names = readdirSync(wire).flatMap((file) => (file.endsWith('.json') ? [file.slice(0, -5)] : []))
    expect(names.sort()).toEqual([...compared, ...refused, ...Object.keys(others)].sort())
  })
})
