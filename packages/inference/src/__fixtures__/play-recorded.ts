import type { EngineRequest, EngineTokens, TokenCandidate } from '../engine/engine.ts'
import type { FakeEngine } from './fake-engine.ts'

/** What a recorded answer of vLLM says of tokens; of a stream, its chunks. */
export interface RecordedAnswer {
  readonly usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } } | null
  readonly prompt_logprobs?: readonly (Readonly<Record<string, { readonly logprob: number; readonly rank: number }>> | null)[] | null
  readonly choices: readonly {
    readonly index: number
    readonly finish_reason: 'stop' | 'length' | 'abort' | null
    readonly stop_reason: number | null
    readonly token_ids: readonly number[]
    readonly logprobs: { readonly content: readonly RecordedToken[] } | null
  }[]
}
interface RecordedToken {
  readonly token_id: number
  readonly logprob: number
  readonly rank: number
  readonly top_logprobs: readonly { readonly token_id: number; readonly logprob: number; readonly rank: number }[]
}

/** Makes an engine answer the next request with what was recorded, token by token: what the server makes of it can then be compared value by value. */
export function playRecorded(engine: FakeEngine, chunks: readonly RecordedAnswer[]): void {
  const submit = engine.submit.bind(engine)
  const parts = chunks.flatMap(({ choices }) => choices)
  const choices = new Set(parts.map(({ index }) => index))
  const lists = chunks[0]?.prompt_logprobs?.map((list) => Object.entries(list ?? {})) ?? null
  const cachedTokens = chunks.find(({ usage }) => usage !== null)?.usage?.prompt_tokens_details.cached_tokens ?? 0
  let next = 0
  engine.submit = (request, onEvent) => {
    const index = next++
    const own = parts.filter((part) => part.index === index)
    if (next === choices.size) engine.submit = submit
    const { id } = request
    setImmediate(() => {
      const promptLogprobs =
        lists?.map((entries, at) => entries.map(([token, value]) => ({ id: Number(token), ...value })).sort(ownFirst(request, at))) ?? null
      onEvent({ kind: 'prompt', id, cachedTokens, storedTokens: 0, queueSeconds: 0, prefillSeconds: 0, promptLogprobs })
      const tokens = own.flatMap(({ token_ids, logprobs }) => token_ids.map((token, at) => tokenEvent(id, token, logprobs?.content[at])))
      const emit = (at: number) => {
        const event = tokens[at]
        if (event !== undefined) onEvent(event)
        if (at + 1 < tokens.length) {
          setImmediate(emit, at + 1)
          return
        }
        const last = own.at(-1)
        const reason = last?.finish_reason ?? 'error'
        onEvent({ kind: 'end', id, reason, stopId: last?.stop_reason ?? null, routedExperts: null, indexChoices: null, error: null })
      }
      emit(0)
    })
  }
}

/** An engine gives the token that is there first. JSON has the ids in ascending order. */
const ownFirst = ({ promptIds }: EngineRequest, at: number) => (a: TokenCandidate, b: TokenCandidate) =>
  Number(b.id === promptIds[at]) - Number(a.id === promptIds[at])

function tokenEvent(id: string, token: number, recorded: RecordedToken | undefined): EngineTokens {
  const candidates = recorded?.top_logprobs.map(({ token_id, logprob, rank }) => ({ id: token_id, logprob, rank })) ?? []
  return {
    ...{ kind: 'tokens', id, tokenIds: Uint32Array.of(token), logprobs: Float32Array.of(recorded?.logprob ?? -1) },
    ...{ versions: Uint32Array.of(0), contextVersionsMin: Uint32Array.of(0), candidates: [candidates] },
  }
}
