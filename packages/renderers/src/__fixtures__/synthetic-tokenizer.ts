import { createJsonTokenizer, type TokenizerConfigJson } from '../tokenizer/json-tokenizer.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'
import type { z } from 'zod'

/** Names that GLM-5's tokeniser has, in the order of its ids. */
export const glmTokens = [
  '<|endoftext|>', '[gMASK]', '<sop>', '<|system|>', '<|user|>', '<|assistant|>', '<|observation|>', '<think>', '</think>',
  '<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>', '<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>',
]
/** Names that Qwen3's tokeniser has. */
export const qwenTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>', '<think>', '</think>']

/** The 256 letters of byte-level BPE, by byte. */
function byteLetters(): string[] {
  const letters: string[] = []
  let next = 256
  for (let byte = 0; byte < 256; byte++) {
    const isVisible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    letters.push(String.fromCharCode(isVisible ? byte : next++))
  }
  return letters
}

/** Merges that make boundaries matter: a newline joins a newline, and letters join. */
const merges: [string, string][] = [['Ċ', 'Ċ'], ['h', 'e'], ['l', 'l'], ['he', 'll'], ['hell', 'o'], ['Ġ', 'w']]

const split = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

export function tokenizerJson(tokens: readonly string[]): Record<string, unknown> {
  const base = [...byteLetters(), ...merges.map(([a, b]) => a + b)]
  return {
    version: '1.0',
    added_tokens: tokens.map((content, index) => ({
      id: base.length + index, content, special: content.startsWith('<|') || content.startsWith('['),
      single_word: false, lstrip: false, rstrip: false, normalized: false,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: split }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', unk_token: null, fuse_unk: false, byte_fallback: false, vocab: Object.fromEntries(base.map((token, id) => [token, id])), merges },
  }
}

/** A byte-level BPE with a few merges and the special tokens of a family. */
export function syntheticTokenizer(tokens: readonly string[], eos: string, template?: string): Tokenizer {
  const config: z.output<typeof TokenizerConfigJson> = { eos_token: eos, pad_token: '<|endoftext|>' }
  return createJsonTokenizer({
    json: tokenizerJson(tokens), config, file: 'tokenizer.json',
    chatTemplate: template === undefined ? undefined : { text: template, file: 'chat_template.jinja' },
  })
}
