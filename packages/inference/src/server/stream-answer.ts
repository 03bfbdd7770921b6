import type { ServerResponse } from 'node:http'
import { choiceOf, usageOf } from './generate-answer.ts'
import type { Generation } from './generation.ts'
import { HttpFailure } from './http-failure.ts'

/** Bytes that may wait for a slow reader; then chunks are no longer made until it has read. */
const bufferBytes = 1 << 16
/** Tokens of one chunk at most: what a slow reader has missed comes in several. */
const chunkTokens = 256

/**
 * Writes a generation as server-sent events. A reader that is slow holds nobody up: the engine goes on, its tokens gather in the generation, and the next chunk has all
 * that have come since. Resolves when all is written or the client has gone.
 */
export class StreamAnswer {
  readonly finished: Promise<void>
  readonly #response: ServerResponse
  readonly #generation: Generation
  /** Tokens of each completion that are written. */
  readonly #written: number[]
  readonly #isDone: boolean[]
  #isFirst = true
  #isScheduled = false
  #isFinished = false
  #finish: () => void = () => undefined

  constructor(response: ServerResponse, generation: Generation) {
    this.#response = response
    this.#generation = generation
    this.#written = generation.completions.map(() => 0)
    this.#isDone = generation.completions.map(() => false)
    this.finished = new Promise((resolve) => {
      this.#finish = resolve
    })
    response.on('drain', () => this.#write())
    response.on('close', () => this.#end())
  }

  begin(): void {
    this.#response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    this.#response.flushHeaders()
    this.schedule()
  }

  /** Something has come. All that comes in one turn of the loop is one chunk. */
  schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#write()
    })
  }

  /** Ends with an error, which is all that can be said after the status. */
  fail(failure: HttpFailure): void {
    if (this.#isFinished) return
    this.#response.write(`data: ${JSON.stringify(failure.toBody())}\n\ndata: [DONE]\n\n`)
    this.#response.end()
    this.#end()
  }

  get #isBlocked(): boolean {
    return this.#response.writableLength > bufferBytes
  }

  #write(): void {
    const { completions } = this.#generation
    for (let wrote = true; wrote && !this.#isFinished && !this.#isBlocked; ) {
      wrote = false
      for (const completion of completions) {
        const { index, end, tokenIds } = completion
        const from = this.#written[index] ?? 0
        if (this.#isDone[index] === true || this.#isBlocked) continue
        const to = Math.min(tokenIds.length, from + chunkTokens)
        if (to === from && end === null) continue
        if (end?.reason === 'error' && to === tokenIds.length) {
          this.fail(new HttpFailure(500, end.error?.message ?? 'the engine failed'))
          return
        }
        this.#chunk([choiceOf(this.#generation, completion, from, to)], null)
        this.#written[index] = to
        this.#isDone[index] = end !== null && to === tokenIds.length
        wrote = true
      }
    }
    if (!this.#isFinished && this.#isDone.every(Boolean)) this.#close()
  }

  #close(): void {
    if (this.#generation.request.includeUsage) {
      const { cachedTokens, ...usage } = usageOf(this.#generation)
      this.#chunk([], { ...usage, prompt_tokens_details: { cached_tokens: cachedTokens } })
    }
    this.#response.write('data: [DONE]\n\n')
    this.#response.end()
    this.#end()
  }

  #chunk(choices: readonly object[], usage: object | null): void {
    const { request, requestId } = this.#generation
    const prompt =
      this.#isFirst && request.returnsTokenIds ? { prompt_token_ids: Array.from(request.promptIds), mm_placeholders: null } : {}
    this.#isFirst = false
    this.#response.write(`data: ${JSON.stringify({ request_id: requestId, usage, ...prompt, output_mode: 'tokens', choices })}\n\n`)
  }

  #end(): void {
    this.#isFinished = true
    this.#finish()
  }
}
