import type { Turn } from '@trilithon/core'
import type { EngineAnswer } from '../client/engine-answer.ts'
import type { GenerateClient } from '../client/generate-client.ts'
import type { Answer, EpisodeModel } from '../define/define-environment.ts'
import type { EpisodeSampling } from '../pool/environment-pool.ts'
import { hashText } from '../reverse-text/random.ts'
import type { ChatMessage, RenderedPrompt, TurnRenderer } from '../turn-renderer.ts'
import { ConversationEnd, EpisodeFailure } from './episode-failure.ts'

/** What the calls of one episode have in common. */
export interface ConversationPlan {
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly model: string
  readonly salt: string
  readonly sampling: EpisodeSampling
  /** null or left out: the engine chooses. */
  readonly samplingSeed?: number | null
  readonly maxSeqLen: number
  /** -1: no limit. */
  readonly maxTotalCompletionTokens: number
  readonly wantsRoutedExperts: boolean
}

export interface ConversationOptions {
  readonly plan: ConversationPlan
  readonly renderer: TurnRenderer
  readonly client: Pick<GenerateClient, 'generate'>
  readonly signal: AbortSignal
  /** Of `performance.now()`; null: none. */
  readonly deadline: number | null
  readonly onTurn: (turn: Turn) => void
}

/** Keys of `extra_body` that stand beside `sampling_params`, not in them. */
const topKeys = ['cache_salt', 'priority', 'return_token_ids', 'request_id', 'features', 'kv_transfer_params']
const roles: readonly string[] = ['system', 'user', 'assistant', 'tool']

/**
 * The conversation of one attempt of an episode. Ids only grow: what was sampled is never turned into text and back, and where the renderer has no
 * continuation a new sequence begins, which `extensionBreaks` counts.
 */
export class Conversation implements EpisodeModel {
  readonly turns: Turn[] = []
  readonly answers: Answer[] = []
  /** Set where a limit ended the conversation, whatever the environment makes of it. */
  end: ConversationEnd | null = null
  /** Set where a turn failed, whatever the environment makes of it. */
  failure: unknown = null
  /** Why the engine does not answer at present. */
  outage: string | null = null
  extensionBreaks = 0
  modelSeconds = 0
  readonly #options: ConversationOptions
  readonly #messages: ChatMessage[] = []
  #previous: { readonly prompt: RenderedPrompt; readonly completionIds: Uint32Array } | null = null
  #sampled = 0
  #isBusy = false

  constructor(options: ConversationOptions) {
    this.#options = options
  }

  async turn(messages: readonly ChatMessage[] | string): Promise<Answer> {
    if (this.failure !== null) throw this.failure
    if (this.end !== null) throw this.end
    if (this.#isBusy) throw new Error('model.turn was called before the turn before it was answered')
    const next = checkMessages(messages)
    this.#isBusy = true
    try {
      return await this.#take(next)
    } catch (error) {
      if (error instanceof ConversationEnd) this.end = error
      else this.failure = error
      throw error
    } finally {
      this.#isBusy = false
    }
  }

  async #take(next: readonly ChatMessage[]): Promise<Answer> {
    const { plan, renderer, onTurn } = this.#options
    const prompt = this.#promptOf(next)
    const room = plan.maxSeqLen - prompt.ids.length
    if (room < 1)
      throw new ConversationEnd(
        'prompt_too_long',
        `a prompt of ${prompt.ids.length} tokens leaves no room for an answer in ${plan.maxSeqLen}`,
      )
    const left = plan.maxTotalCompletionTokens === -1 ? Number.POSITIVE_INFINITY : plan.maxTotalCompletionTokens - this.#sampled
    if (left < 1)
      throw new ConversationEnd('max_total_completion_tokens', `the episode has used its ${plan.maxTotalCompletionTokens} tokens`)
    const maxTokens = Math.min(plan.sampling.max_completion_tokens ?? Number.POSITIVE_INFINITY, room, left)
    const engine = await this.#generate(prompt.ids, maxTokens)
    const { finishReason, completionIds } = engine
    if (finishReason === 'abort')
      throw new EpisodeFailure('EngineAborted', `the engine ended the request after ${completionIds.length} tokens`)
    const turn: Turn = {
      promptIds: prompt.ids,
      completionIds,
      logprobs: engine.logprobs,
      versions: engine.versions,
      contextVersionsMin: engine.contextVersionsMin,
      temperature: plan.sampling.temperature ?? 1,
      finishReason,
      ...(engine.routedExperts === null ? {} : { routedExperts: engine.routedExperts }),
    }
    const text = renderer.decode(withoutStop(completionIds, finishReason, renderer.stopIds))
    const answer: Answer = { text, finishReason, promptTokens: prompt.ids.length, completionTokens: completionIds.length }
    this.#previous = { prompt, completionIds }
    this.#sampled += completionIds.length
    this.#messages.push(...next, { role: 'assistant', content: text })
    this.turns.push(turn)
    this.answers.push(answer)
    onTurn(turn)
    return answer
  }

  /** Extends the ids that are there; where that is impossible the whole conversation is rendered anew, as another sequence. */
  #promptOf(next: readonly ChatMessage[]): RenderedPrompt {
    const { renderer } = this.#options
    if (this.#previous === null) return renderer.render(next)
    const extension = renderer.extend(this.#previous.prompt, this.#previous.completionIds, next)
    if (extension.prompt !== undefined) return extension.prompt
    this.extensionBreaks++
    return renderer.render([...this.#messages, ...next])
  }

  async #generate(tokenIds: Uint32Array, maxTokens: number): Promise<EngineAnswer> {
    const { plan, renderer, client, signal, deadline } = this.#options
    const { temperature, top_p, top_k, min_p, extra_body = {} } = plan.sampling
    if ('chat_template_kwargs' in extra_body)
      throw new EpisodeFailure('EngineRejected', 'extra_body.chat_template_kwargs: switches of the chat template belong to the renderer')
    const seed = plan.samplingSeed == null ? null : seedOfTurn(plan.samplingSeed, this.turns.length)
    const given = Object.fromEntries(
      Object.entries({ temperature, top_p, top_k, min_p, seed }).filter(([, value]) => value !== null && value !== undefined),
    )
    const extra = Object.entries(extra_body)
    const began = performance.now()
    try {
      return await client.generate(
        {
          baseUrl: plan.baseUrl,
          headers: plan.headers,
          model: plan.model,
          tokenIds,
          sampling: {
            ...given,
            ...Object.fromEntries(extra.filter(([key]) => !topKeys.includes(key))),
            max_tokens: maxTokens,
            stop_token_ids: renderer.stopIds,
            logprobs: 1,
            skip_special_tokens: false,
            ...(plan.wantsRoutedExperts ? { routed_experts_prompt_start: 0 } : {}),
          },
          top: {
            ...Object.fromEntries(extra.filter(([key]) => topKeys.includes(key))),
            ...(plan.salt === '' ? {} : { cache_salt: plan.salt }),
          },
          fallbackVersion: /^\d+$/.test(plan.salt) ? Number(plan.salt) : 0,
          wantsRoutedExperts: plan.wantsRoutedExperts,
        },
        {
          signal,
          deadline,
          onOutage: (reason) => {
            this.outage = reason
          },
        },
      )
    } finally {
      this.modelSeconds += (performance.now() - began) / 1000
    }
  }
}

/** Each turn has a seed of its own: an engine may draw the first token of every request by the same number. */
function seedOfTurn(seed: number, turn: number): number {
  return turn === 0 ? seed : hashText(`${seed}/${turn}`) >>> 1
}

/** The token that ended the turn is part of the ids and not of the text. */
function withoutStop(ids: Uint32Array, finishReason: Turn['finishReason'], stopIds: readonly number[]): Uint32Array {
  const last = ids.at(-1)
  return finishReason === 'stop' && last !== undefined && stopIds.includes(last) ? ids.subarray(0, -1) : ids
}

function checkMessages(messages: unknown): readonly ChatMessage[] {
  const list: unknown = typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages
  if (!Array.isArray(list) || list.length === 0) throw new TypeError('model.turn wants a text or a list of messages')
  for (const [index, message] of list.entries()) {
    const { role, content } = (message ?? {}) as Partial<ChatMessage>
    if (!roles.includes(role ?? '') || typeof content !== 'string')
      throw new TypeError(`message ${index} of model.turn has no role of ${roles.join(', ')} and a content of text`)
  }
  return list as readonly ChatMessage[]
}
