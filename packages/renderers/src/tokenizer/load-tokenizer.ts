import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { createJsonTokenizer, type TokenizerConfig, TokenizerConfigJson, tokenizerInvalid } from './json-tokenizer.ts'
import type { Tokenizer } from './tokenizer.ts'

const StopIds = z.looseObject({
  eos_token_id: z
    .union([
      z
        .int()
        .min(0)
        .transform((id) => [id]),
      z.array(z.int().min(0)),
    ])
    .nullish(),
})

/**
 * Reads the tokeniser of a model folder: `tokenizer.json`, and where they exist `tokenizer_config.json`, `chat_template.jinja`, and the eos ids of
 * `generation_config.json` or `config.json`. Throws `TOKENIZER_INVALID`.
 */
export function loadTokenizer(folder: string): Tokenizer {
  const file = join(folder, 'tokenizer.json')
  const json = readJson(file)
  if (json === undefined) throw tokenizerInvalid(file, 'the file is missing')
  const config = parse(TokenizerConfigJson, join(folder, 'tokenizer_config.json')) ?? {}
  const stopIds =
    parse(StopIds, join(folder, 'generation_config.json'))?.eos_token_id ?? parse(StopIds, join(folder, 'config.json'))?.eos_token_id ?? []
  return createJsonTokenizer({ json, config, stopIds, chatTemplate: findChatTemplate(folder, config), file })
}

/** A file of its own goes before the key of the configuration; of several named ones, `default` is taken. */
function findChatTemplate(folder: string, config: TokenizerConfig): Tokenizer['chatTemplate'] {
  const file = join(folder, 'chat_template.jinja')
  const text = readText(file)
  if (text !== undefined) return { text, file }
  const key = config.chat_template
  const template = typeof key === 'string' ? key : key?.find(({ name }) => name === 'default')?.template
  return template === undefined ? undefined : { text: template, file: join(folder, 'tokenizer_config.json') }
}

function parse<Schema extends z.ZodType>(schema: Schema, file: string): z.output<Schema> | undefined {
  const json = readJson(file)
  if (json === undefined) return undefined
  const parsed = schema.safeParse(json)
  if (parsed.success) return parsed.data
  throw tokenizerInvalid(file, parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`).join('; '))
}

function readJson(file: string): unknown {
  const text = readText(file)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw tokenizerInvalid(file, `it is no JSON: ${(cause as Error).message}`, cause)
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw tokenizerInvalid(file, `it cannot be read: ${(cause as Error).message}`, cause)
  }
}
