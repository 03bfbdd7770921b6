import { TrilithonError } from '@trilithon/core'
import { parseMessages, type Tokenizer } from '@trilithon/renderers'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { parseBody } from './generate-request.ts'
import { HttpFailure } from './http-failure.ts'
import type { ServerContext, TextTools } from './server-context.ts'

const model = z.string().nullish()
/** Our tokenisers add no token to a text, so both answers of this switch are the same. */
const add_special_tokens = z.boolean().nullish()
const TextBody = z.strictObject({ model, prompt: z.string(), add_special_tokens, return_token_strs: z.boolean().nullish() })
const ChatBody = z.strictObject({
  ...{ model, add_special_tokens, return_token_strs: z.boolean().nullish() },
  messages: z.array(z.unknown()).min(1),
  add_generation_prompt: z.boolean().nullish(),
  tools: z.array(z.record(z.string(), z.unknown())).nullish(),
})
const TokensBody = z.strictObject({ model, tokens: z.array(z.int().min(0)) })

/** `/tokenize` and `/detokenize`, with the tokeniser of the model folder. */
export function addTextRoutes(server: FastifyInstance, { text, engine, model: served }: ServerContext): void {
  const toolsFor = (given: string | null | undefined): TextTools => {
    if (given != null && given !== served)
      throw new HttpFailure(404, `there is no model ${JSON.stringify(given.slice(0, 200))} here; this server has ${served}`, 'model')
    if (text === null) throw new HttpFailure(400, 'the model folder has no tokenizer.json, so this server knows token ids alone')
    return text
  }
  server.post('/tokenize', async (http) => {
    const isChat = typeof http.body === 'object' && http.body !== null && 'messages' in http.body
    const body = isChat ? parseBody(ChatBody, http.body) : parseBody(TextBody, http.body)
    const tools = toolsFor(body.model)
    const tokens = 'messages' in body ? renderChat(tools, body) : tools.tokenizer.encode(body.prompt)
    const token_strs = body.return_token_strs === true ? tokens.map((id) => tools.tokenizer.decode([id])) : null
    return { count: tokens.length, max_model_len: engine.info.maxModelLen, tokens, token_strs }
  })
  server.post('/detokenize', async (http) => {
    const body = parseBody(TokensBody, http.body)
    const { tokenizer } = toolsFor(body.model)
    return { prompt: decode(tokenizer, body.tokens) }
  })
}

function renderChat({ renderer }: TextTools, body: z.output<typeof ChatBody>): number[] {
  if (renderer === null) throw new HttpFailure(400, 'the model has no chat template, so messages have no tokens', 'messages')
  const messages = parseMessages(body.messages, 'messages')
  const generationPrompt = body.add_generation_prompt ?? true
  return Array.from(renderer.render(messages, { tools: body.tools ?? [], generationPrompt }).ids)
}

function decode(tokenizer: Tokenizer, tokens: readonly number[]): string {
  const unknown = tokens.find((id) => id >= tokenizer.vocabularySize)
  if (unknown !== undefined)
    throw new HttpFailure(400, `token id ${unknown} is not below the vocabulary of ${tokenizer.vocabularySize}`, 'tokens')
  try {
    return tokenizer.decode(tokens)
  } catch (error) {
    if (TrilithonError.is(error)) throw error
    throw new HttpFailure(400, `these tokens have no text: ${(error as Error).message}`, 'tokens')
  }
}
