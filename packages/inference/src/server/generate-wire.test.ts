import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
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

/** Keys in order, nulls, and the types of all other values; a list by its first item that is not null. Additions of ours are left out. */
function shapeOf(value: unknown, path = ''): unknown {
  if (value === null) return null
  if (Array.isArray(value)) {
    const first = value.find((item) => item !== null)
    return first === undefined ? [] : [shapeOf(first, `${path}[]`)]
  }
  if (typeof value !== 'object') return typeof value
  const entries = Object.entries(value).filter(([key]) => !additions.includes(key))
  // Ids of tokens are keys here.
  if (path.endsWith('prompt_logprobs[]')) return shapeOf(entries[0]?.[1], `${path}.id`)
  return entries.map(([key, item]) => [key, shapeOf(item, `${path}.${key}`)])
}

let service: FakeService
beforeAll(async () => {
  service = await startFake({ stepMs: 0 })
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

describe('answers as vLLM 0.32 does', () => {
  test.each([
    'generate',
    'generate_n2',
    'generate_bad_empty',
    'generate_bad_vocab',
    'generate_empty_salt',
    'generate_no_max',
    'priority_fcfs',
    'dp_rank_header',
    'models',
    'version',
    'get_health',
    'get_ping',
    'get_load',
    'get_is_paused',
    'get_get_world_size',
    'get_weight_info',
    'get_weight_version',
    'pause_keep',
    'pause_bogus',
    'pause_twice',
    'resume',
    'abort',
    'reset_prefix_cache',
    'weight_checksum',
  ])('%s', async (name) => {
    const exchange = recorded(name)
    const response = await replay(exchange)
    const text = await response.text()
    expect(response.status, text).toBe(exchange.status)
    expect(typeOf(response)).toBe(exchange.headers['content-type'])
    if (exchange.response === '') expect(text).toBe('')
    else {
      const theirs = structuredClone(exchange.response)
      // No text without a tokeniser; the prompt of these ended by chance where it did; their parameters have other names.
      const json = JSON.parse(text)
      for (const answer of [theirs, json] as { choices?: { stop_reason: unknown; finish_reason: unknown }[] }[])
        for (const choice of answer.choices ?? []) Object.assign(choice, { stop_reason: null, finish_reason: 'any' })
      const ours = JSON.stringify(shapeOf(json)).replaceAll('["decoded_token",null]', '["decoded_token","string"]')
      if (name === 'weight_checksum') expect(Object.keys(json)).toEqual(['checksums'])
      else if (response.status === 400) expect(Object.keys(json.error)).toEqual(['message', 'type', 'param', 'code'])
      else expect(JSON.parse(ours)).toEqual(shapeOf(theirs))
    }
    await service.post('/resume')
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
    const response = await replay(exchange)
    expect(response.headers.get('content-type')).toBe(exchange.headers['content-type'])
    const parse = (text: string) =>
      text
        .trimEnd()
        .split('\n\n')
        .map((event) => (event === 'data: [DONE]' ? event : JSON.parse(event.replace(/^data: /, ''))))
    const ours = parse(await response.text())
    const theirs = parse(exchange.response as string)
    expect(ours.map((chunk) => shapeOf(chunk))).toEqual(theirs.map((chunk) => shapeOf(chunk)))
    expect(ours.flatMap(({ choices }) => choices ?? []).flatMap((choice) => choice.token_ids)).toHaveLength(3)
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
    expect(shapeOf(json)).toEqual(shapeOf(exchange.response))
    expect(json.choices[0]?.finish_reason).toBe('abort')
    expect(json.choices[0]?.token_ids.length).toBeGreaterThanOrEqual(5)
    await slow.close()
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
    expect(readdirSync(wire).filter((file) => file.endsWith('.json')).length).toBeGreaterThan(25)
  })
})
