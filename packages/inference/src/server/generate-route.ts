import { randomBytes } from 'node:crypto'
import type { PolicyVersion } from '@trilithon/core'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requestIdPrefix } from './active-requests.ts'
import { binaryAnswer, binaryMediaType } from './binary-answer.ts'
import { answerOf, choiceOf } from './generate-answer.ts'
import { type GenerateRequest, parseGenerateRequest } from './generate-request.ts'
import { Generation } from './generation.ts'
import { HttpFailure } from './http-failure.ts'
import type { ServerContext } from './server-context.ts'
import { StreamAnswer } from './stream-answer.ts'

/** All requests share the KV of equal beginnings; who must not share brings a salt. */
const tenant = 'default'

/** `/inference/v1/generate`: token ids in, token ids out. */
export function addGenerateRoute(server: FastifyInstance, context: ServerContext): void {
  const { maxModelLen, vocabSize } = context.engine.info
  // A prompt that fills the context, with room for spaces and all other fields: more is not read.
  const bodyLimit = 262_144 + 24 * maxModelLen
  const { returnsRoutedExperts, nextSeed } = context

  server.post('/inference/v1/generate', { bodyLimit }, async (http, reply) => {
    const closing = context.closing()
    if (closing !== null) throw new HttpFailure(503, closing)
    refuseOtherRank(http)
    refuseOlderWeights(http, context.weights.version)
    const request = parseGenerateRequest(http.body, { maxModelLen, vocabSize, returnsRoutedExperts, nextSeed })
    refuseOtherModel(request.model, context.model)
    const isBinary = (http.headers.accept ?? '').includes(binaryMediaType)
    refuseTogether(request, isBinary)
    await answer(http, reply, request, isBinary, context)
    return reply
  })
}

async function answer(
  http: FastifyRequest,
  reply: FastifyReply,
  request: GenerateRequest,
  isBinary: boolean,
  context: ServerContext,
): Promise<void> {
  const { engine, active, metrics, model, text, returnsRoutedExperts } = context
  let stream: StreamAnswer | undefined
  const generation = new Generation({
    ...{ engine, request, tenant, returnsRoutedExperts, observer: metrics },
    requestId: `${requestIdPrefix}${clientIdOf(http) ?? request.requestId ?? randomBytes(8).toString('hex')}`,
    logprobs: isBinary ? (request.logprobs ?? 0) : request.logprobs,
    onProgress: () => stream?.schedule(),
  })
  generation.begin()
  active.add(generation)
  // Also when all is written; then there is nothing left to end.
  const onClose = () => generation.abort()
  reply.raw.once('close', onClose)
  if (reply.raw.destroyed) onClose()
  try {
    if (request.stream) {
      reply.hijack()
      stream = new StreamAnswer(reply.raw, generation)
      stream.begin()
      await generation.ended
      // A slow reader holds its answer, not the place of a request.
      active.delete(generation)
      await stream.finished
      return
    }
    await generation.ended
    const failed = generation.completions.find(({ end }) => end?.reason === 'error')
    if (failed !== undefined) throw new HttpFailure(500, failed.end?.error?.message ?? 'the engine failed')
    // A model may have more rows than its tokeniser has tokens.
    const decode = (id: number) => (text === null || id >= text.tokenizer.vocabularySize ? null : text.tokenizer.decode([id]))
    const about = { model, created: Math.floor(Date.now() / 1000), decode }
    if (isBinary) void reply.type(binaryMediaType).send(binaryAnswer(generation, about))
    else {
      const choices = generation.completions.map((completion) => choiceOf(generation, completion))
      void reply.type('application/json').send(JSON.stringify(answerOf(generation, choices, about)))
    }
  } finally {
    active.delete(generation)
  }
}

function clientIdOf(http: FastifyRequest): string | undefined {
  const header = http.headers['x-request-id']
  if (header === undefined || header === '') return undefined
  const id = String(header)
  if (id.length > 256) throw new HttpFailure(400, 'X-Request-Id has at most 256 characters', 'X-Request-Id')
  return id
}

function refuseOtherRank(http: FastifyRequest): void {
  const rank = http.headers['x-data-parallel-rank']
  if (rank !== undefined && rank !== '0')
    throw new HttpFailure(
      400,
      `this server is one engine, with the rank 0, and not ${String(rank).slice(0, 40)}; other engines have ports of their own`,
      'X-data-parallel-rank',
    )
}

/**
 * A client whose run has come further than this engine waits until the engine is brought there: one that was started again serves its model folder first, and keys
 * of that would be kept under the salt of a later version.
 */
function refuseOlderWeights(http: FastifyRequest, served: PolicyVersion): void {
  const header = http.headers['x-min-weight-version']
  if (header === undefined) return
  const least = String(header)
  if (!/^\d{1,10}$/.test(least)) throw new HttpFailure(400, 'X-Min-Weight-Version is the number of a version', 'X-Min-Weight-Version')
  if (served < Number(least))
    throw new HttpFailure(
      503,
      `version ${served} of the weights serves, and version ${least} or a later one is asked for`,
      'X-Min-Weight-Version',
    )
}

function refuseOtherModel(given: string | null, served: string): void {
  if (given !== null && given !== served)
    throw new HttpFailure(404, `there is no model ${JSON.stringify(given.slice(0, 200))} here; this server has ${served}`, 'model')
}

/** What an answer of that form has no place for is refused, not left out. */
function refuseTogether(request: GenerateRequest, isBinary: boolean): void {
  if (request.stream && isBinary) throw new HttpFailure(400, `a stream has no form as ${binaryMediaType}`, 'stream')
  if (request.stream && request.promptLogprobs !== null)
    throw new HttpFailure(400, 'a stream carries no prompt_logprobs', 'sampling_params.prompt_logprobs')
  if (isBinary && (request.logprobs ?? 0) > 1)
    throw new HttpFailure(400, `${binaryMediaType} carries the sampled token's log-probability alone`, 'sampling_params.logprobs')
}
