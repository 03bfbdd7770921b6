import { Pool } from 'undici'
import { ConversationEnd, EpisodeFailure, sleep } from '../episode/episode-failure.ts'
import { AnswerFault, binaryMediaType, type EngineAnswer, refuseLogprobs } from './engine-answer.ts'
import { parseBinaryAnswer } from './parse-binary-answer.ts'
import { parseJsonAnswer } from './parse-json-answer.ts'

export interface GenerateRequest {
  /** With or without `/v1` at its end. */
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly model: string
  readonly tokenIds: Uint32Array
  /** `sampling_params` of the request. */
  readonly sampling: Readonly<Record<string, unknown>>
  /** Fields at the top of the request beside those that are always there. */
  readonly top: Readonly<Record<string, unknown>>
  /** Version of tokens of which the engine does not say one. */
  readonly fallbackVersion: number
  readonly wantsRoutedExperts: boolean
}

export interface GenerateOptions {
  readonly signal: AbortSignal
  /** Of `performance.now()`; an engine that does not answer until then is unavailable. null: after `retriesWithoutDeadline`. */
  readonly deadline: number | null
  /** Told when the engine does not answer, with the reason, and with null when it does again. */
  readonly onOutage?: (reason: string | null) => void
}

/** Where no deadline ends it. */
const retriesWithoutDeadline = 10
const firstWaitMs = 100
const longestWaitMs = 5000
/** So that the reason is told before the deadline is. */
const marginMs = 50

/**
 * Sends tokens to engines and brings tokens back. Connections are kept per engine. A connection that breaks and an answer of 5xx (or 408, 429) are tried
 * again, ever slower, while the deadline allows: an outage is a class of failure and never an answer.
 */
export class GenerateClient {
  readonly #pools = new Map<string, Pool>()
  readonly #timeoutMs: number
  readonly #connectTimeoutMs: number

  constructor({ timeoutS = 1200, connectTimeoutS = 30 }: { timeoutS?: number; connectTimeoutS?: number } = {}) {
    this.#timeoutMs = timeoutS * 1000
    this.#connectTimeoutMs = connectTimeoutS * 1000
  }

  /**
   * Throws `EpisodeFailure` (`EngineUnavailable`, `EngineRejected`, `EngineAnswerInvalid`), `ConversationEnd` where the engine says that the prompt is too
   * long, and the reason of the signal.
   */
  async generate(request: GenerateRequest, { signal, deadline, onOutage }: GenerateOptions): Promise<EngineAnswer> {
    const url = new URL(`${request.baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')}/inference/v1/generate`)
    const body = JSON.stringify({
      model: request.model,
      token_ids: Array.from(request.tokenIds),
      sampling_params: request.sampling,
      ...request.top,
    })
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#post(url, request, body, signal)
      if ('answer' in outcome) {
        if (attempt > 0) onOutage?.(null)
        return outcome.answer
      }
      onOutage?.(outcome.outage)
      const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** attempt) * (0.75 + Math.random() / 2)
      const leftMs = deadline === null ? Number.POSITIVE_INFINITY : deadline - marginMs - performance.now()
      const isLast = deadline === null && attempt >= retriesWithoutDeadline
      if (leftMs > 0 && !isLast) await sleep(Math.min(waitMs, leftMs), signal)
      if (leftMs <= waitMs || isLast)
        throw new EpisodeFailure('EngineUnavailable', `${url.origin} did not answer ${attempt + 1} times, last: ${outcome.outage}`)
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
    this.#pools.clear()
  }

  async #post(
    url: URL,
    request: GenerateRequest,
    body: string,
    signal: AbortSignal,
  ): Promise<{ answer: EngineAnswer } | { outage: string }> {
    let status: number
    let type: string
    let bytes: Uint8Array
    try {
      const response = await this.#poolOf(url.origin).request({
        method: 'POST',
        path: url.pathname,
        headers: { 'content-type': 'application/json', accept: `${binaryMediaType}, application/json;q=0.9`, ...request.headers },
        body,
        signal,
      })
      status = response.statusCode
      type = String(response.headers['content-type'] ?? '')
      bytes = new Uint8Array(await response.body.arrayBuffer())
    } catch (error) {
      if (signal.aborted) throw signal.reason
      return { outage: error instanceof Error ? error.message || error.name : String(error) }
    }
    if (status >= 500 || status === 429 || status === 408) return { outage: `${status} ${reasonOf(bytes)}` }
    if (status !== 200) throw rejection(status, reasonOf(bytes))
    return { answer: parseAnswer(request, type, bytes) }
  }

  #poolOf(origin: string): Pool {
    const known = this.#pools.get(origin)
    if (known !== undefined) return known
    const pool = new Pool(origin, {
      connections: 8192,
      pipelining: 1,
      headersTimeout: this.#timeoutMs,
      bodyTimeout: this.#timeoutMs,
      connect: { timeout: this.#connectTimeoutMs },
    })
    this.#pools.set(origin, pool)
    return pool
  }
}

function parseAnswer({ tokenIds, fallbackVersion, wantsRoutedExperts }: GenerateRequest, type: string, bytes: Uint8Array): EngineAnswer {
  try {
    const answer = type.startsWith(binaryMediaType)
      ? parseBinaryAnswer(bytes)
      : parseJsonAnswer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'), fallbackVersion)
    refuseLogprobs(answer.logprobs)
    if (answer.completionIds.length === 0 && answer.finishReason !== 'abort') throw new AnswerFault('it has no token')
    if (!wantsRoutedExperts) return { ...answer, routedExperts: null }
    const rows = answer.routedExperts?.shape[0]
    const expected = tokenIds.length + answer.completionIds.length - 1
    if (rows === undefined) throw new AnswerFault('routed experts were asked for, and the engine sent none')
    if (rows !== expected) throw new AnswerFault(`${rows} rows of routed experts for ${expected} tokens that were an input`)
    return answer
  } catch (error) {
    if (!(error instanceof AnswerFault)) throw error
    throw new EpisodeFailure('EngineAnswerInvalid', `the answer of the engine cannot be used: ${error.message}`)
  }
}

function rejection(status: number, reason: string): Error {
  if (status === 400 && /longer than|too long|leaves no room|maximum (context|model) length|max_model_len/i.test(reason))
    return new ConversationEnd('prompt_too_long', reason)
  return new EpisodeFailure('EngineRejected', `${status} ${reason}`)
}

/** The message of an error in OpenAI's or FastAPI's shape, else the beginning of the text. */
function reasonOf(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  try {
    const json = JSON.parse(text) as { error?: { message?: unknown } | string; message?: unknown; detail?: unknown }
    const message = (typeof json.error === 'object' ? json.error?.message : json.error) ?? json.message ?? json.detail
    if (message !== undefined) return typeof message === 'string' ? message : JSON.stringify(message)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return text.slice(0, 200)
}
