import type { EngineEnd, TokenCandidate } from '../engine/engine.ts'
import type { Completion, Generation } from './generation.ts'
import { numpyFile } from './numpy-file.ts'

/** Tokens `[start, end)` of a completion that have the same version. */
export interface VersionSpan {
  readonly version: string
  readonly start: number
  readonly end: number
}

export function versionSpans(versions: readonly number[]): VersionSpan[] {
  const spans: { version: string; start: number; end: number }[] = []
  let current: number | undefined
  for (const [index, version] of versions.entries()) {
    const last = spans.at(-1)
    if (last !== undefined && version === current) last.end = index + 1
    else spans.push({ version: String(version), start: index, end: index + 1 })
    current = version
  }
  return spans
}

/** JSON has no infinity; this is how vLLM writes the logarithm of 0. */
const finite = (logprob: number) => (Number.isFinite(logprob) ? logprob : -9999)

/** The sampled token first, then the most likely, each once and as many as were asked for, the sampled one always. */
function topLogprobs(
  candidates: readonly TokenCandidate[],
  sampled: Omit<TokenCandidate, 'rank'> & { rank: number | null },
  count: number,
) {
  const others = candidates.filter(({ id }) => id !== sampled.id)
  return [sampled, ...others]
    .slice(0, Math.max(1, count))
    .map(({ id, logprob, rank }) => ({ token_id: id, logprob: finite(logprob), rank }))
}

function logprobsOf(completion: Completion, from: number, to: number, count: number) {
  const content = []
  for (let at = from; at < to; at++) {
    const id = completion.tokenIds[at] ?? 0
    const candidates = completion.candidates[at] ?? []
    const found = candidates.find((candidate) => candidate.id === id)
    const logprob = completion.logprobs[at] ?? Number.NEGATIVE_INFINITY
    const rank = found?.rank ?? null
    content.push({ token_id: id, logprob: finite(logprob), rank, top_logprobs: topLogprobs(candidates, { id, logprob, rank }, count) })
  }
  return { content }
}

/** One choice with its tokens `[from, to)`; what belongs to the whole completion stands where these are the last of one that has ended. */
export function choiceOf(generation: Generation, completion: Completion, from = 0, to = completion.tokenIds.length) {
  const { logprobs, returnsIndexChoices } = generation.request
  const { tokenIds } = completion
  const end = to === tokenIds.length ? completion.end : null
  const experts = end?.routedExperts ?? null
  return {
    index: completion.index,
    finish_reason: end?.reason ?? null,
    stop_reason: end?.stopId ?? null,
    token_ids: tokenIds.slice(from, to),
    routed_experts: experts === null ? null : numpyFile(experts.data, experts.shape, experts.dtype).toString('base64'),
    sampling_mask: null,
    weight_versions: end === null ? null : versionSpans(completion.versions),
    context_versions: end === null ? null : versionSpans(completion.contextVersionsMin),
    logprobs: logprobs === null ? null : logprobsOf(completion, from, to, logprobs),
    ...(returnsIndexChoices ? { index_choices: indexChoicesOf(end) } : {}),
  }
}

function indexChoicesOf(end: EngineEnd | null): string | null {
  if (end === null || end.indexChoices === null) return null
  const { data, shape } = end.indexChoices
  return numpyFile(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), shape, 'int32').toString('base64')
}

/** Text of a token, for a person who reads the answer; null without a tokeniser. */
export type DecodeToken = (id: number) => string | null

function promptLogprobsOf(generation: Generation, decode: DecodeToken) {
  const { promptLogprobs, request } = generation
  if (promptLogprobs === null || request.promptLogprobs === null) return null
  const count = request.promptLogprobs
  return promptLogprobs.map((candidates, at) => {
    const given = request.promptIds[at]
    const own = candidates.find(({ id }) => id === given)
    if (at === 0 || own === undefined) return null
    const listed = [own, ...candidates.filter(({ id }) => id !== given).slice(0, own.rank <= count ? Math.max(0, count - 1) : count)]
    return Object.fromEntries(
      listed.map(({ id, logprob, rank }) => [String(id), { logprob: finite(logprob), rank, decoded_token: decode(id) }]),
    )
  })
}

export function usageOf(generation: Generation) {
  const prompt_tokens = generation.request.promptIds.length
  const completion_tokens = generation.completions.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0)
  const { cachedTokens } = generation
  return { prompt_tokens, total_tokens: prompt_tokens + completion_tokens, completion_tokens, cachedTokens }
}

export interface AnswerContext {
  readonly model: string
  /** Seconds since 1970. */
  readonly created: number
  readonly decode: DecodeToken
}

/** The whole answer, with every key that vLLM's has; `choices` is given, because the binary answer has others. */
export function answerOf(generation: Generation, choices: readonly object[], { model, created, decode }: AnswerContext) {
  const { cachedTokens, ...usage } = usageOf(generation)
  return {
    request_id: generation.requestId,
    model,
    created,
    usage: {
      ...usage,
      prompt_tokens_details: { cached_tokens: cachedTokens, created_cache_tokens: null, multimodal_tokens: null },
      completion_tokens_details: null,
    },
    prompt_logprobs: promptLogprobsOf(generation, decode),
    prompt_token_id_logprobs: null,
    prompt_token_ids: generation.request.returnsTokenIds ? Array.from(generation.request.promptIds) : null,
    mm_placeholders: null,
    metrics: null,
    kv_transfer_params: null,
    ec_transfer_params: null,
    output_mode: 'tokens',
    choices,
  }
}
