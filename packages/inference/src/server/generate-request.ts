import { z } from 'zod'
import type { SamplingOptions } from '../engine/engine.ts'
import { HttpFailure } from './http-failure.ts'

/** What a request may ask of this engine. */
export interface RequestLimits {
  readonly maxModelLen: number
  readonly vocabSize: number
  readonly returnsRoutedExperts: boolean
  /** Seed of a request that brings none. */
  nextSeed(): bigint
}

/** A request for `n` completions of one prompt, checked. */
export interface GenerateRequest {
  readonly requestId: string | null
  readonly model: string | null
  readonly promptIds: Uint32Array
  readonly n: number
  /** Of the first completion; the i-th one adds i to the seed. */
  readonly sampling: SamplingOptions
  readonly logprobs: number | null
  readonly promptLogprobs: number | null
  readonly routedExpertsFrom: number
  readonly returnsIndexChoices: boolean
  readonly returnsTokenIds: boolean
  readonly salt: string
  readonly priority: number
  readonly stream: boolean
  readonly includeUsage: boolean
}

const maxCompletions = 1024
const maxLogprobs = 20

/** A field of the recorded schema that this engine does not support: null and the listed values change nothing, so they are taken. */
function unsupported(...harmless: readonly (string | number | boolean)[]) {
  return z
    .custom<unknown>((value) => value == null || harmless.includes(value as never) || (Array.isArray(value) && value.length === 0), {
      error: 'is not supported here',
    })
    .optional()
}
/** 0, or far enough from it that logits over it are numbers. */
const temperature = z.number().refine((value) => value === 0 || (value >= 1e-6 && value <= 1e6), 'must be 0, or from 1e-6 to 1e6')
/** A switch about text, which an answer of token ids has none of. */
const textOnly = z.boolean().nullish()
const ids = z.array(z.int().min(0).max(0xffff_ffff))
/** null means the default, as if the field were not there. */
const withDefault = <Schema extends z.ZodType<number | boolean>>(schema: Schema, value: z.output<Schema>) =>
  schema.nullish().transform((given) => given ?? value)

const SamplingParams = z.strictObject({
  n: withDefault(z.int().min(1).max(maxCompletions), 1),
  temperature: withDefault(temperature, 1),
  top_p: withDefault(z.number().gt(0).max(1), 1),
  top_k: withDefault(z.int().min(-1), 0),
  min_p: withDefault(z.number().min(0).max(1), 0),
  seed: z.int().nullish(),
  stop_token_ids: ids.nullish(),
  ignore_eos: withDefault(z.boolean(), false),
  max_tokens: z.int().min(1).nullish(),
  min_tokens: withDefault(z.int().min(0), 0),
  logprobs: z.int().min(0).max(maxLogprobs).nullish(),
  prompt_logprobs: z.int().min(0).max(maxLogprobs).nullish(),
  routed_experts_prompt_start: withDefault(z.int().min(0), 0),
  extra_args: z.strictObject({ return_index_choices: z.boolean().optional() }).nullish(),
  detokenize: textOnly,
  skip_special_tokens: textOnly,
  spaces_between_special_tokens: textOnly,
  include_stop_str_in_output: textOnly,
  presence_penalty: unsupported(0),
  frequency_penalty: unsupported(0),
  repetition_penalty: unsupported(1),
  watermarking: unsupported(false),
  stop: unsupported(''),
  prompt_logprob_token_ids: unsupported(),
  prompt_logprob_start: unsupported(0),
  logprob_token_ids: unsupported(),
  flat_logprobs: unsupported(false),
  output_kind: unsupported(0),
  stream_interval: unsupported(1),
  skip_clone: unsupported(false),
  output_text_buffer_length: unsupported(0),
  structured_outputs: unsupported(),
  logit_bias: unsupported(),
  allowed_token_ids: unsupported(),
  bad_words: unsupported(),
  skip_reading_prefix_cache: unsupported(false),
  thinking_token_budget: unsupported(),
  repetition_detection: unsupported(),
  trace_decode_token_ids: unsupported(),
})

const Body = z.strictObject({
  request_id: z.string().min(1).max(256).nullish(),
  model: z.string().nullish(),
  // Checked below: a schema of its items would copy a prompt of a hundred thousand tokens.
  token_ids: z.custom<readonly unknown[]>((value) => Array.isArray(value), { error: 'must be a list of token ids' }),
  sampling_params: SamplingParams,
  return_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.strictObject({ include_usage: z.boolean().nullish(), continuous_usage_stats: unsupported(false) }).nullish(),
  cache_salt: z.string().min(1, 'must not be empty').max(1024).nullish(),
  priority: withDefault(z.int(), 0),
  output_mode: unsupported('tokens'),
  token_offsets: unsupported(),
  features: unsupported(),
  content_parts: unsupported(),
  reasoning_ended: unsupported(false),
  reasoning_parser_kwargs: unsupported(),
  kv_transfer_params: unsupported(),
  ec_transfer_params: unsupported(),
})

/** Checks the body of `/inference/v1/generate`. Throws `HttpFailure` 400 that names the field. */
export function parseGenerateRequest(body: unknown, limits: RequestLimits): GenerateRequest {
  const parsed = parseBody(Body, body)
  const params = parsed.sampling_params
  const promptIds = promptOf(parsed.token_ids, limits)
  const room = limits.maxModelLen - promptIds.length
  const maxTokens = Math.min(params.max_tokens ?? room, room)
  const { routed_experts_prompt_start: routedFrom } = params
  const fail = (message: string, field: string) => new HttpFailure(400, message, `sampling_params.${field}`)
  if (params.min_tokens > maxTokens)
    throw fail(`min_tokens ${params.min_tokens} is more than the ${maxTokens} tokens that may come`, 'min_tokens')
  if (routedFrom > 0 && !limits.returnsRoutedExperts)
    throw fail('routed_experts_prompt_start has no effect: this server does not return routed experts', 'routed_experts_prompt_start')
  if (routedFrom > promptIds.length)
    throw fail(
      `routed_experts_prompt_start ${routedFrom} lies behind the prompt of ${promptIds.length} tokens`,
      'routed_experts_prompt_start',
    )
  const outside = params.stop_token_ids?.find((id) => id >= limits.vocabSize)
  if (outside !== undefined) throw fail(`stop token ${outside} is not below the vocabulary of ${limits.vocabSize}`, 'stop_token_ids')
  return {
    requestId: parsed.request_id ?? null,
    model: parsed.model ?? null,
    promptIds,
    n: params.n,
    sampling: {
      temperature: params.temperature,
      topK: Math.max(0, params.top_k),
      topP: params.top_p,
      minP: params.min_p,
      seed: params.seed == null ? limits.nextSeed() : BigInt(params.seed),
      maxTokens,
      minTokens: params.min_tokens,
      stopIds: params.stop_token_ids ?? [],
      stopsAtEnd: !params.ignore_eos,
    },
    logprobs: params.logprobs ?? null,
    promptLogprobs: params.prompt_logprobs ?? null,
    routedExpertsFrom: routedFrom,
    returnsIndexChoices: params.extra_args?.return_index_choices === true,
    returnsTokenIds: parsed.return_token_ids === true,
    salt: parsed.cache_salt ?? '',
    priority: parsed.priority,
    stream: parsed.stream === true,
    includeUsage: parsed.stream_options?.include_usage === true,
  }
}

function promptOf(tokens: readonly unknown[], { maxModelLen, vocabSize }: RequestLimits): Uint32Array {
  const fail = (message: string) => new HttpFailure(400, message, 'token_ids')
  if (tokens.length === 0) throw fail('token_ids needs at least one token')
  if (tokens.length >= maxModelLen)
    throw fail(`a prompt of ${tokens.length} tokens leaves no room for an answer: a sequence has at most ${maxModelLen}`)
  const ids = new Uint32Array(tokens.length)
  for (let index = 0; index < tokens.length; index++) {
    const id = tokens[index]
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0) throw fail(`token_ids[${index}] is no token id`)
    if (id >= vocabSize) throw fail(`token id ${id} is not below the vocabulary of ${vocabSize}`)
    ids[index] = id
  }
  return ids
}

/** Checks a body against a strict schema. Throws `HttpFailure` 400: one sentence per problem, `param` is the first field. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new HttpFailure(400, 'the body must be a JSON object')
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.slice(0, 8).flatMap((issue) => {
    const at = issue.path.map(String)
    if (issue.code !== 'unrecognized_keys') return [{ path: at.join('.'), text: `${at.join('.') || 'the body'}: ${issue.message}` }]
    return issue.keys.slice(0, 8).map((key) => {
      const path = [...at, key].join('.')
      return { path, text: `${path}: there is no such field` }
    })
  })
  throw new HttpFailure(400, problems.map(({ text }) => text.slice(0, 200)).join('; '), problems[0]?.path.slice(0, 200) ?? null)
}
