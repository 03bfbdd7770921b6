import { TrilithonError } from '@trilithon/core'
import { createJsonTokenizer, TokenizerConfigJson } from './json-tokenizer.ts'
import type { Tokenizer } from './tokenizer.ts'

const pad = '<pad>'
const bos = '<bos>'
const eos = '<eos>'

/** Messages as they are, one after the other; an answer is closed by eos, so that what follows always extends what was there. */
const chatTemplate =
  "{% for message in messages %}{{ message.content }}{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"

export interface CharTokenizer {
  readonly tokenizer: Tokenizer
  /** By name, the files of a model folder that this tokeniser is: `loadTokenizer` and Hugging Face's libraries read them. */
  readonly files: Readonly<Record<string, string>>
}

/**
 * One token per character, for examples and tests: pad 0, bos 1, eos 2, then the separators, then the alphabet, in the order given. It is a BPE without
 * merges, so it needs no code of its own. Throws `TOKENIZER_INVALID` for a character that is there twice.
 */
export function createCharTokenizer(alphabet: string, separators = '='): CharTokenizer {
  const characters = [...separators, ...alphabet]
  const twice = characters.find((character, index) => characters.indexOf(character) !== index)
  if (alphabet === '' || twice !== undefined) {
    const fault = twice === undefined ? 'it has no character' : `it has ${JSON.stringify(twice)} twice`
    throw new TrilithonError('TOKENIZER_INVALID', `the alphabet of a character tokeniser: ${fault}`, { hint: 'List each character once.' })
  }
  const named = [pad, bos, eos]
  const vocabulary = Object.fromEntries([...named, ...characters].map((token, id) => [token, id]))
  const json = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: named.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: vocabulary,
      merges: [],
    },
  }
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    clean_up_tokenization_spaces: false,
    bos_token: bos,
    eos_token: eos,
    pad_token: pad,
    chat_template: chatTemplate,
  }
  const file = 'the character tokeniser'
  const tokenizer = createJsonTokenizer({
    json,
    config: TokenizerConfigJson.parse(config),
    chatTemplate: { text: chatTemplate, file },
    file,
  })
  const write = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
  return { tokenizer, files: { 'tokenizer.json': write(json), 'tokenizer_config.json': write(config) } }
}
