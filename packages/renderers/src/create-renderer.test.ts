import { describe, expect, it } from 'vitest'
import { glmTokens, qwenTokens, syntheticTokenizer, tokenizerJson } from './__fixtures__/synthetic-tokenizer.ts'
import { createRenderer } from './create-renderer.ts'
import type { Message } from './messages.ts'
import { findExtensionBreak } from './renderer.ts'
import { createTemplateRenderer } from './template/template-renderer.ts'
import { createJsonTokenizer } from './tokenizer/json-tokenizer.ts'

const withCode = (code: string, message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) })
const chatMl =
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{{ prefix or '' }}{% endif %}"
const qwen = (template?: string) => syntheticTokenizer(qwenTokens, '<|im_end|>', template)
const glm = syntheticTokenizer(glmTokens, '<|endoftext|>')
const talk: Message[] = [
  { role: 'system', content: 'hello' },
  { role: 'user', content: 'hello' },
  { role: 'assistant', content: 'hello' },
  { role: 'user', content: 'hello' },
  { role: 'assistant', content: 'hello' },
]

describe('the renderer of a configuration', () => {
  it.each([
    ['Qwen/Qwen3-0.6B', 'qwen3'],
    ['models/Qwen3-30B-A3B', 'qwen3'],
    ['zai-org/GLM-5', 'glm-5'],
    ['zai-org/GLM-5-FP8', 'glm-5'],
    ['/models/GLM-5.1-FP8', 'glm-5.1'],
  ])('auto takes for %s the renderer %s', (model, name) => {
    const tokenizer = name === 'qwen3' ? qwen() : glm
    expect(createRenderer({ name: 'auto' }, { tokenizer, model }).name).toBe(name)
  })

  it.each(['models/mine', 'Qwen/Qwen3-VL-8B', 'Qwen/Qwen3-4B-Thinking-2507', 'zai-org/GLM-5.2', 'Qwen/Qwen3.5-4B'])(
    'auto refuses %s',
    (model) => {
      expect(() => createRenderer({ name: 'auto' }, { tokenizer: glm, model })).toThrow(
        withCode('CONFIG_VALUE_INVALID', /No renderer is known/),
      )
    },
  )

  it('is the chat template where none or "default" is named, and passes its switches on', () => {
    const options = { tokenizer: qwen(chatMl), model: 'x' }
    expect(createRenderer(null, options).name).toBe('default')
    const rendered = createRenderer({ name: 'default', prefix: 'hell' }, options).render(talk.slice(0, 1), { generationPrompt: true })
    expect(options.tokenizer.decode(rendered.ids)).toBe('<|im_start|>system\nhello<|im_end|>\n<|im_start|>assistant\nhell')
    const given = createRenderer(null, { ...options, chatTemplate: { text: '{{ messages[0].content }}', file: 'mine.jinja' } })
    expect(options.tokenizer.decode(given.render(talk.slice(0, 1)).ids)).toBe('hello')
  })

  it('refuses what is not built', () => {
    expect(() => createRenderer({ name: 'kimi-k2' }, { tokenizer: glm, model: 'x' })).toThrow(withCode('FEATURE_UNAVAILABLE', /kimi-k2/))
    const preserving = { name: 'default', preserve_all_thinking: true }
    expect(() => createRenderer(preserving, { tokenizer: qwen(chatMl), model: 'x' })).toThrow(
      withCode('FEATURE_UNAVAILABLE', /decides itself/),
    )
  })
})

describe('a chat template', () => {
  it('extends itself, message by message, and attributes each token', () => {
    const tokenizer = qwen(chatMl)
    const renderer = createTemplateRenderer(tokenizer)
    expect(findExtensionBreak(renderer, talk)).toBeUndefined()
    const { ids, messageIndices, sampled } = renderer.render(talk)
    for (const [index, { role }] of talk.entries()) {
      const of = (wanted: (token: number) => boolean) =>
        tokenizer.decode([...ids].filter((_, token) => messageIndices[token] === index && wanted(token)))
      expect(of(() => true)).toBe(`<|im_start|>${role}\nhello<|im_end|>\n`)
      expect(of((token) => sampled[token] === 1)).toBe(role === 'assistant' ? 'hello<|im_end|>' : '')
    }
  })

  it('extends results of tools where it wants a call before them', () => {
    const strict =
      "{% for m in messages %}{% if m.role == 'tool' and not messages[loop.index0 - 1].tool_calls %}{{ raise_exception('no call') }}{% endif %}" +
      "{{ '<|im_start|>' + m.role + '\n' + m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}" +
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    const tokenizer = qwen(strict)
    const renderer = createTemplateRenderer(tokenizer)
    const prompt = renderer.render(talk.slice(0, 2), { generationPrompt: true })
    const { rendering } = renderer.extend(prompt, tokenizer.encode('call<|im_end|>'), [{ role: 'tool', content: 'rain' }])
    expect(tokenizer.decode(rendering?.ids.slice(prompt.ids.length) ?? [])).toBe(
      'call<|im_end|>\n<|im_start|>tool\nrain<|im_end|>\n<|im_start|>assistant\n',
    )
    expect(() => renderer.render([...talk.slice(0, 3), { role: 'tool', content: 'rain' }])).toThrow(
      withCode('MESSAGES_INVALID', /refuses the messages: no call/),
    )
  })

  it.each([
    ['does not parse', '{% for %}', /cannot be parsed/],
    ['fails', '{{ messages | nonsense }}', /it failed: .*nonsense/],
    ['puts its generation prompt elsewhere', '{% if add_generation_prompt %}x{% endif %}{{ messages[0].content }}', /does not follow/],
  ])('that %s is refused in words', (_, template, message) => {
    expect(() => createTemplateRenderer(qwen(template)).render(talk)).toThrow(withCode('CHAT_TEMPLATE_INVALID', message))
  })

  it('must be there, and the tokeniser must work on bytes', () => {
    expect(() => createTemplateRenderer(qwen())).toThrow(withCode('CHAT_TEMPLATE_INVALID', /no chat template/))
    const json = {
      ...tokenizerJson(qwenTokens),
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    }
    const spacing = createJsonTokenizer({ json, config: {}, file: 'tokenizer.json', chatTemplate: { text: chatMl, file: 'x' } })
    const isRefused = () => createTemplateRenderer(spacing)
    // A space behind a special token too is the same text in pieces.
    expect(isRefused).not.toThrow()
    const metaspace = {
      ...tokenizerJson(qwenTokens),
      pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
      model: { type: 'BPE', unk_token: null, vocab: { '▁': 0, a: 1 }, merges: [] },
    }
    const first = createJsonTokenizer({ json: metaspace, config: {}, file: 'tokenizer.json', chatTemplate: { text: chatMl, file: 'x' } })
    expect(() => createTemplateRenderer(first)).toThrow(withCode('FEATURE_UNAVAILABLE', /writes a space/))
  })
})
