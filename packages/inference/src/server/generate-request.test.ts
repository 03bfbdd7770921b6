import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { parseGenerateRequest, type RequestLimits } from './generate-request.ts'
import { HttpFailure } from './http-failure.ts'

const limits: RequestLimits = { maxModelLen: 64, vocabSize: 128, returnsRoutedExperts: true, nextSeed: () => 7n }
const body = (more: object = {}, sampling: object = {}) => ({ token_ids: [1, 2, 3], sampling_params: sampling, ...more })
const parse = (value: unknown) => parseGenerateRequest(value, limits)
const paramOf = (value: unknown): string | null => {
  try {
    parse(value)
  } catch (error) {
    if (error instanceof HttpFailure && error.status === 400) return error.param
    throw error
  }
  throw new Error('the request was taken')
}

interface Field {
  readonly default?: unknown
  readonly fields?: Record<string, Field>
}
const schema = JSON.parse(readFileSync(join(import.meta.dirname, '..', '__fixtures__', 'wire', 'generate_schema.json'), 'utf8')) as {
  request: Record<string, Field>
}
const top = Object.entries(schema.request).filter(([name]) => name !== 'sampling_params' && name !== 'token_ids')
const sampling = Object.entries(schema.request.sampling_params?.fields ?? {})

describe('every field of the recorded schema', () => {
  test.each(top)('%s is taken as null and at its default', (name, field) => {
    for (const value of [null, ...('default' in field ? [field.default] : [])]) expect(parse(body({ [name]: value }))).toBeDefined()
  })
  test.each(sampling)('sampling_params.%s is taken as null and at its default', (name, field) => {
    for (const value of [null, ...('default' in field ? [field.default] : [])]) expect(parse(body({}, { [name]: value }))).toBeDefined()
  })

  it('is honoured or refused by name when it has another value', () => {
    const odd: Record<string, unknown> = { detokenize: false, skip_special_tokens: false, spaces_between_special_tokens: false }
    const honoured = new Set<string>()
    for (const [name] of sampling) {
      const value = odd[name] ?? { unheard: 'of' }
      try {
        parse(body({}, { [name]: value }))
        honoured.add(name)
      } catch (error) {
        expect((error as HttpFailure).param?.startsWith(`sampling_params.${name}`)).toBe(true)
      }
    }
    // About text, of which there is none.
    expect([...honoured]).toEqual(['detokenize', 'skip_special_tokens', 'spaces_between_special_tokens'])
    for (const [name] of top) expect(paramOf(body({ [name]: { unheard: 'of' } }))?.startsWith(name)).toBe(true)
  })
})

test.each([
  ['foo_bar', body({ foo_bar: 1 })],
  ['sampling_params.cache_salt', body({}, { cache_salt: 'zz' })],
  ['sampling_params.presence_penalty', body({}, { presence_penalty: 0.5 })],
  ['sampling_params.repetition_penalty', body({}, { repetition_penalty: 1.1 })],
  ['sampling_params.stop', body({}, { stop: ['x'] })],
  ['sampling_params.logit_bias', body({}, { logit_bias: { 1: 2 } })],
  ['sampling_params.structured_outputs', body({}, { structured_outputs: { json: {} } })],
  ['sampling_params.skip_reading_prefix_cache', body({}, { skip_reading_prefix_cache: true })],
  ['sampling_params.extra_args.kv_transfer_params', body({}, { extra_args: { kv_transfer_params: {} } })],
  ['kv_transfer_params', body({ kv_transfer_params: { do_remote_decode: true } })],
  ['output_mode', body({ output_mode: 'text' })],
  ['stream_options.continuous_usage_stats', body({ stream_options: { continuous_usage_stats: true } })],
  ['sampling_params.temperature', body({}, { temperature: -1 })],
  ['sampling_params.temperature', body({}, { temperature: 1e-9 })],
  ['sampling_params.temperature', body({}, { temperature: Number.POSITIVE_INFINITY })],
  ['sampling_params.top_p', body({}, { top_p: 0 })],
  ['sampling_params.top_k', body({}, { top_k: -2 })],
  ['sampling_params.min_p', body({}, { min_p: 1.5 })],
  ['sampling_params.n', body({}, { n: 0 })],
  ['sampling_params.n', body({}, { n: 1_000_000_000 })],
  ['sampling_params.max_tokens', body({}, { max_tokens: 0 })],
  ['sampling_params.min_tokens', body({}, { max_tokens: 3, min_tokens: 4 })],
  ['sampling_params.logprobs', body({}, { logprobs: 21 })],
  ['sampling_params.logprobs', body({}, { logprobs: -1 })],
  ['sampling_params.seed', body({}, { seed: 2 ** 60 })],
  ['sampling_params.stop_token_ids', body({}, { stop_token_ids: [128] })],
  ['sampling_params.routed_experts_prompt_start', body({}, { routed_experts_prompt_start: 4 })],
  ['token_ids', body({ token_ids: [] })],
  ['token_ids', body({ token_ids: [1, 128] })],
  ['token_ids', body({ token_ids: [1, -1] })],
  ['token_ids', body({ token_ids: [1.5] })],
  ['token_ids', body({ token_ids: ['1'] })],
  ['token_ids', body({ token_ids: 'abc' })],
  ['sampling_params', { token_ids: [1] }],
  ['cache_salt', body({ cache_salt: '' })],
])('%s is refused by name', (param, value) => {
  expect(paramOf(value)).toBe(param)
})

it('takes a prompt one below the context, and refuses one that fills it or is longer', () => {
  const prompt = (length: number) => body({ token_ids: Array.from({ length }, () => 1) })
  expect(parse(prompt(63)).sampling.maxTokens).toBe(1)
  expect(paramOf(prompt(64))).toBe('token_ids')
  expect(paramOf(prompt(65))).toBe('token_ids')
})

it('fills the context where max_tokens says nothing or too much', () => {
  expect(parse(body()).sampling.maxTokens).toBe(61)
  expect(parse(body({}, { max_tokens: 1000 })).sampling.maxTokens).toBe(61)
  expect(parse(body({}, { max_tokens: 5 })).sampling.maxTokens).toBe(5)
})

it('gives a request without a seed the next one, and takes a negative one', () => {
  expect(parse(body()).sampling.seed).toBe(7n)
  expect(parse(body({}, { seed: 3 })).sampling.seed).toBe(3n)
  expect(parse(body({}, { seed: -1 })).sampling.seed).toBe(-1n)
})

it('refuses routed_experts_prompt_start where no experts are returned', () => {
  const without = { ...limits, returnsRoutedExperts: false }
  expect(() => parseGenerateRequest(body({}, { routed_experts_prompt_start: 1 }), without)).toThrow(/no effect/)
})

it('takes or refuses any JSON with a named field, and never fails otherwise', () => {
  const value = fc.oneof(fc.jsonValue(), fc.integer(), fc.constant(null), fc.double())
  const params = fc.dictionary(fc.constantFrom(...sampling.map(([name]) => name), 'other'), value, { maxKeys: 6 })
  const whole = fc.dictionary(fc.constantFrom(...top.map(([name]) => name), 'token_ids', 'other'), value, { maxKeys: 6 })
  fc.assert(
    fc.property(whole, params, fc.boolean(), (outer, inner, isNear) => {
      const given = isNear ? { ...outer, token_ids: [1], sampling_params: inner } : { ...outer, sampling_params: inner }
      try {
        const request = parse(given)
        expect(request.promptIds.length).toBeGreaterThan(0)
        expect(request.sampling.maxTokens).toBeGreaterThanOrEqual(request.sampling.minTokens)
      } catch (error) {
        expect(error).toBeInstanceOf(HttpFailure)
        expect((error as HttpFailure).status).toBe(400)
        expect((error as HttpFailure).param).not.toBeNull()
      }
    }),
    { numRuns: 500 },
  )
})
