import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers'
import { TrilithonError } from '@trilithon/core'
import { z } from 'zod'
import type { Tokenizer } from './tokenizer.ts'

const AddedToken = z.looseObject({ id: z.int().min(0), content: z.string().min(1), special: z.boolean().default(false) })

/** What we read ourselves; the library reads the rest and checks it by using it. */
const TokenizerJson = z.looseObject({
  added_tokens: z.array(AddedToken).default([]),
  model: z.looseObject({ type: z.enum(['BPE', 'WordPiece', 'Unigram']).optional(), unk_token: z.string().nullish() }),
  normalizer: z.unknown().default(null),
  pre_tokenizer: z.unknown().default(null),
  post_processor: z.unknown().default(null),
  decoder: z.unknown().default(null),
})

const TokenText = z
  .union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)])
  .nullish()
  .catch(undefined)

export const TokenizerConfigJson = z.looseObject({
  bos_token: TokenText,
  eos_token: TokenText,
  pad_token: TokenText,
  unk_token: TokenText,
  chat_template: z.union([z.string(), z.array(z.looseObject({ name: z.string(), template: z.string() }))]).nullish(),
})
export type TokenizerConfig = z.output<typeof TokenizerConfigJson>

export interface JsonTokenizerSources {
  /** `tokenizer.json`, parsed. */
  readonly json: unknown
  readonly config: TokenizerConfig
  /** Ids that other files of the folder name as ends of a turn. */
  readonly stopIds?: readonly number[]
  readonly chatTemplate?: { readonly text: string; readonly file: string } | undefined
  /** For messages: where `json` came from. */
  readonly file: string
}

/** Stands for "no token": it is in no vocabulary, so the library gives it no id instead of dropping the character without a word. */
const unknownMark = '\u0000trilithon-unknown\u0000'

/**
 * A tokeniser from the format of Hugging Face. The library is `@huggingface/tokenizers`, pure JavaScript: one dependency without a binary. The
 * native `tokenizers` takes a fifth of the time for long texts, which matters little where history is never tokenised twice.
 */
export function createJsonTokenizer({ json, config, stopIds = [], chatTemplate, file }: JsonTokenizerSources): Tokenizer {
  const parsed = TokenizerJson.safeParse(json)
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`)
    throw tokenizerInvalid(file, faults.join('; '))
  }
  const library = createLibraryTokenizer(parsed.data, config, file)
  const vocabulary = library.get_vocab(true)
  const addedTokens = new Map(parsed.data.added_tokens.map(({ content, id }) => [content, id]))
  const specialTokens = namedTokens(config)
  for (const [name, text] of Object.entries(specialTokens)) {
    if (!vocabulary.has(text)) throw tokenizerInvalid(file, `${name} is ${JSON.stringify(text)}, which is no token of it`)
  }
  const idOf = (text: string | undefined) => (text === undefined ? undefined : vocabulary.get(text))
  const eosId = idOf(specialTokens.eos_token)
  let vocabularySize = 0
  for (const id of vocabulary.values()) vocabularySize = Math.max(vocabularySize, id + 1)
  const stops = [...new Set([...(eosId === undefined ? [] : [eosId]), ...stopIds])]
  const outside = stops.find((id) => id >= vocabularySize)
  if (outside !== undefined) throw tokenizerInvalid(file, `the eos id ${outside} is not below its ${vocabularySize} tokens`)

  const encode = (text: string): number[] => {
    if (text === '') return []
    const ids: (number | undefined)[] = library.encode(text, { add_special_tokens: false }).ids
    if (ids.includes(undefined)) throw notEncodable(library, text, file)
    return ids as number[]
  }
  const decode: Tokenizer['decode'] = (ids, { skipSpecialTokens = false } = {}) => {
    const list = Array.from(ids)
    const unknown = list.find((id) => library.id_to_token(id) === undefined)
    if (unknown !== undefined) throw new TrilithonError('TEXT_NOT_ENCODABLE', `${unknown} is no token id of ${file}`, { path: file })
    if (list.length === 0) return ''
    return library.decode(list, { skip_special_tokens: skipSpecialTokens, clean_up_tokenization_spaces: false })
  }
  return {
    vocabularySize,
    bosId: idOf(specialTokens.bos_token),
    eosId,
    padId: idOf(specialTokens.pad_token),
    stopIds: stops,
    addedTokens,
    specialTokens,
    chatTemplate,
    encode,
    decode,
    findId: (token) => vocabulary.get(token),
  }
}

function createLibraryTokenizer(json: z.output<typeof TokenizerJson>, config: TokenizerConfig, file: string): LibraryTokenizer {
  try {
    // The library reads `config` for older formats only; `remove_space` and the like would change the text.
    const library = new LibraryTokenizer(json, config)
    const model = library.model as { unk_token?: string | undefined } | null
    if (model !== null && (model.unk_token === undefined || model.unk_token === null)) model.unk_token = unknownMark
    return library
  } catch (cause) {
    throw tokenizerInvalid(file, (cause as Error).message, cause)
  }
}

function namedTokens(config: TokenizerConfig): Record<string, string> {
  const tokens: Record<string, string> = {}
  for (const [name, text] of Object.entries(config)) {
    if (!/^(bos|eos|pad|unk|sep|cls|mask)_token$/.test(name)) continue
    const token = TokenText.parse(text)
    if (typeof token === 'string') tokens[name] = token
  }
  return tokens
}

function notEncodable(library: LibraryTokenizer, text: string, file: string): TrilithonError {
  const missing = [...new Set(text)].filter((character) => {
    const ids: (number | undefined)[] = library.encode(character, { add_special_tokens: false }).ids
    return ids.includes(undefined)
  })
  const named = missing.slice(0, 8).map((character) => JSON.stringify(character))
  const more = missing.length > named.length ? ` and ${missing.length - named.length} more` : ''
  return new TrilithonError('TEXT_NOT_ENCODABLE', `${file} has no token for ${named.join(', ')}${more}`, {
    path: file,
    hint: 'Remove these characters from the text, or use a tokeniser that has them.',
    details: { characters: missing },
  })
}

export function tokenizerInvalid(file: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('TOKENIZER_INVALID', `${file}: ${reason}`, {
    path: file,
    hint: 'Copy the tokeniser again from the checkpoint that the model came from.',
    cause,
  })
}
