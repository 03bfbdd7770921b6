import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { qwenTokens, syntheticTokenizer, tokenizerJson } from '../__fixtures__/synthetic-tokenizer.ts'
import { createTemplateRenderer } from '../template/template-renderer.ts'
import { createCharTokenizer } from './char-tokenizer.ts'
import { loadTokenizer } from './load-tokenizer.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-tokenizer-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (files: Readonly<Record<string, string>>) => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}
const withCode = (code: string, message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) })

describe('a tokeniser of a folder', () => {
  it('gives text back as it was, whatever it holds', () => {
    const tokenizer = syntheticTokenizer(qwenTokens, '<|im_end|>')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text)
      }),
    )
    expect(tokenizer.encode('')).toEqual([])
    expect(tokenizer.decode([])).toBe('')
  })

  it('keeps special tokens in the text unless asked otherwise', () => {
    const tokenizer = syntheticTokenizer(qwenTokens, '<|im_end|>')
    const ids = tokenizer.encode('hello<|im_end|><think>x')
    expect(tokenizer.decode(ids)).toBe('hello<|im_end|><think>x')
    expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe('hello<think>x')
    expect(() => tokenizer.decode([100_000])).toThrow(withCode('TEXT_NOT_ENCODABLE', /100000 is no token id/))
  })

  it('knows the ends of a turn and the template from the files around it', () => {
    write({
      'tokenizer.json': JSON.stringify(tokenizerJson(qwenTokens)),
      'tokenizer_config.json': JSON.stringify({
        eos_token: { content: '<|im_end|>' },
        pad_token: null,
        chat_template: [
          { name: 'tools', template: 'no' },
          { name: 'default', template: 'yes' },
        ],
      }),
    })
    const plain = loadTokenizer(folder)
    expect(plain.chatTemplate?.text).toBe('yes')
    expect(plain.stopIds).toEqual([plain.findId('<|im_end|>')])
    expect(plain.padId).toBeUndefined()
    expect(plain.vocabularySize).toBe(262 + qwenTokens.length)
    const end = plain.findId('<|endoftext|>')
    write({
      'config.json': JSON.stringify({ eos_token_id: 1 }),
      'generation_config.json': JSON.stringify({ eos_token_id: [end] }),
      'chat_template.jinja': 'own',
    })
    expect(loadTokenizer(folder).stopIds).toEqual([plain.eosId, end])
    expect(loadTokenizer(folder).chatTemplate).toEqual({ text: 'own', file: join(folder, 'chat_template.jinja') })
  })

  it.each([
    ['no file', {}, /the file is missing/],
    ['a torn file', { 'tokenizer.json': '{"model": ' }, /it is no JSON/],
    ['another file', { 'tokenizer.json': '{"a": 1}' }, /model/],
    [
      'a model of an unknown kind',
      { 'tokenizer.json': JSON.stringify({ ...tokenizerJson([]), model: { type: 'Nonsense', vocab: {} } }) },
      /model\.type/,
    ],
    [
      'an eos that is no token',
      { 'tokenizer.json': JSON.stringify(tokenizerJson([])), 'tokenizer_config.json': '{"eos_token": "<eos>"}' },
      /eos_token is "<eos>"/,
    ],
    [
      'an eos id that is no token',
      { 'tokenizer.json': JSON.stringify(tokenizerJson([])), 'config.json': '{"eos_token_id": 4096}' },
      /4096 is not below/,
    ],
    [
      'an eos id that is no number',
      { 'tokenizer.json': JSON.stringify(tokenizerJson([])), 'config.json': '{"eos_token_id": "x"}' },
      /eos_token_id/,
    ],
  ])('refuses %s', (_, files, message) => {
    write(files)
    expect(() => loadTokenizer(folder)).toThrow(withCode('TOKENIZER_INVALID', message))
  })
})

describe('a character tokeniser', () => {
  const { tokenizer, files } = createCharTokenizer('abcdefghijklmnop')

  it('has one token per character, and 20 for 16 letters', () => {
    expect(tokenizer.vocabularySize).toBe(20)
    expect([tokenizer.padId, tokenizer.bosId, tokenizer.eosId]).toEqual([0, 1, 2])
    expect(tokenizer.encode('=abp<eos>')).toEqual([3, 4, 5, 19, 2])
    expect(tokenizer.decode([3, 4, 5, 19, 2])).toBe('=abp<eos>')
  })

  it('is written as files that give the same tokeniser', () => {
    write(files)
    const read = loadTokenizer(folder)
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'abcdefghijklmnop=') }), (text) => {
        expect(read.encode(text)).toEqual(tokenizer.encode(text))
        expect(read.encode(text)).toHaveLength(text.length)
        expect(read.decode(read.encode(text))).toBe(text)
      }),
    )
    expect([read.vocabularySize, read.eosId, read.stopIds]).toEqual([20, 2, [2]])
  })

  it('renders prompt and completion as one text that ends by eos', () => {
    const rendering = createTemplateRenderer(tokenizer).render([
      { role: 'user', content: 'abc=' },
      { role: 'assistant', content: 'cba' },
    ])
    expect(tokenizer.decode(rendering.ids)).toBe('abc=cba<eos>')
    expect([...rendering.sampled]).toEqual([0, 0, 0, 0, 1, 1, 1, 1])
    expect([...rendering.messageIndices]).toEqual([0, 0, 0, 0, 1, 1, 1, 1])
  })

  it('names the characters that it lacks instead of dropping them', () => {
    expect(() => tokenizer.encode('ab xyz')).toThrow(withCode('TEXT_NOT_ENCODABLE', /" ", "x", "y", "z"/))
  })

  it.each([
    ['', /no character/],
    ['aba', /"a" twice/],
    ['ab=', /"=" twice/],
  ])('refuses the alphabet "%s"', (alphabet, message) => {
    expect(() => createCharTokenizer(alphabet)).toThrow(withCode('TOKENIZER_INVALID', message))
  })
})
