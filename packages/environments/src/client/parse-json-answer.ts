import { z } from 'zod'
import { AnswerFault, type EngineAnswer, finishReasonOf } from './engine-answer.ts'
import { parseRoutedExperts } from './routed-experts.ts'

const Range = z.looseObject({ version: z.union([z.string(), z.number()]), start: z.int().min(0), end: z.int().min(0) })
const Body = z.looseObject({
  choices: z.tuple([
    z.looseObject({
      token_ids: z.array(z.int().min(0)),
      finish_reason: z.unknown(),
      logprobs: z.looseObject({ content: z.array(z.looseObject({ logprob: z.number() })) }),
      routed_experts: z.unknown().optional(),
      weight_versions: z.array(Range).nullish(),
      context_versions: z.array(Range).nullish(),
    }),
  ]),
})

/**
 * An answer in JSON, of our engine or of vLLM 0.22 to 0.32. Where it does not say which version sampled a token, `fallbackVersion` is taken: the version
 * that the group began under, which no token is older than. Throws `AnswerFault`.
 */
export function parseJsonAnswer(text: string, fallbackVersion: number): EngineAnswer {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new AnswerFault(`it is no JSON: ${(cause as Error).message}`, { cause })
  }
  const parsed = Body.safeParse(json)
  if (!parsed.success) throw new AnswerFault(parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '))
  const [choice] = parsed.data.choices
  const completionIds = Uint32Array.from(choice.token_ids)
  const logprobs = Float32Array.from(choice.logprobs.content, ({ logprob }) => logprob)
  if (logprobs.length !== completionIds.length)
    throw new AnswerFault(`${logprobs.length} log-probabilities for ${completionIds.length} tokens`)
  const versions = spread(choice.weight_versions, completionIds.length, () => fallbackVersion)
  return {
    completionIds,
    logprobs,
    versions,
    contextVersionsMin: spread(choice.context_versions, completionIds.length, (token) =>
      Math.min(fallbackVersion, versions[token] ?? fallbackVersion),
    ),
    finishReason: finishReasonOf(choice.finish_reason),
    routedExperts: parseRoutedExperts(choice.routed_experts),
  }
}

/** Ranges of tokens to one version per token. A version that is no number (vLLM calls its first one "default") says nothing. */
function spread(ranges: readonly z.output<typeof Range>[] | null | undefined, count: number, fallback: (token: number) => number) {
  const versions = Uint32Array.from({ length: count }, (_, token) => fallback(token))
  for (const { version, start, end } of ranges ?? []) {
    const number = typeof version === 'number' ? version : /^\d+$/.test(version) ? Number(version) : Number.NaN
    if (Number.isInteger(number)) versions.fill(number, start, end)
  }
  return versions
}
