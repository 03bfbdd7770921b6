import { readFileSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { glmTokens, qwenTokens, syntheticTokenizer } from '../__fixtures__/synthetic-tokenizer.ts'
import { type Message, parseMessages, type ToolDefinition } from '../messages.ts'
import { findExtensionBreak, maskByRole, type Renderer, type Rendering } from '../renderer.ts'
import { compileChatTemplate } from '../template/chat-template.ts'
import { createTemplateRenderer } from '../template/template-renderer.ts'
import { createGlmRenderer } from './glm-renderer.ts'
import { createQwen3Renderer } from './qwen3-renderer.ts'

const readTemplate = (name: string) => readFileSync(new URL(`../__fixtures__/${name}`, import.meta.url), 'utf8')
const qwenTemplate = readTemplate('qwen3.jinja')
const glmTemplate = readTemplate('glm-5.jinja')
const qwen = syntheticTokenizer(qwenTokens, '<|im_end|>', qwenTemplate)
const glm = syntheticTokenizer(glmTokens, '<|endoftext|>', glmTemplate)

const tools: ToolDefinition[] = [
  {
    type: 'function',
    function: { name: 'weather', description: 'Wie ist das Wetter in Zürich?', strict: true, parameters: { type: 'object' } },
  },
]

/** Conversations of a system message, questions, answers with and without thinking, calls, and runs of tool results. */
const text = fc.constantFrom('hello', 'hello world', 'hell no', 'Zürich 東京', '{"a": 1}', 'two\n\nlines', "it's 1234")
const call = fc.record({
  name: fc.constantFrom('weather', 'time'),
  arguments: fc.oneof(fc.constant({}), fc.constant({ city: 'Zürich', days: 3, list: [1, 'two'] }), fc.constant({ text: 'x "y"' })),
})
const answer = fc.record(
  {
    role: fc.constant('assistant' as const),
    content: fc.oneof(text, fc.constant('')),
    reasoning: text,
    toolCalls: fc.array(call, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: ['role', 'content'] },
)
const exchange = fc
  .tuple(text, fc.array(fc.tuple(answer, fc.array(text, { minLength: 1, maxLength: 2 })), { maxLength: 2 }), answer)
  .map(([question, rounds, last]): Message[] => [
    { role: 'user', content: question },
    ...rounds.flatMap(([reply, results]) => [reply, ...results.map((content) => ({ role: 'tool' as const, content }))]),
    last,
  ])
const conversation = fc
  .tuple(fc.boolean(), fc.array(exchange, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([hasSystem, exchanges, isAnswered]): Message[] => {
    const messages = exchanges.flat()
    return [...(hasSystem ? [{ role: 'system' as const, content: 'Be brief.' }] : []), ...(isAnswered ? messages : messages.slice(0, -1))]
  })

/** A failure prints its seed and path, which `fc.assert` accepts here. */
const runs = { numRuns: 25 }

const qwenVariants = [{}, { enable_thinking: false }]
const glmVariants = [
  { version: 'glm-5' as const, options: {}, variables: {} },
  { version: 'glm-5' as const, options: { enable_thinking: false }, variables: { enable_thinking: false } },
  { version: 'glm-5' as const, options: { clear_thinking: false }, variables: { clear_thinking: false } },
  { version: 'glm-5.1' as const, options: {}, variables: { empty_thinking: true, bare_tools: true } },
  {
    version: 'glm-5.1' as const,
    options: { enable_thinking: false },
    variables: { empty_thinking: true, bare_tools: true, enable_thinking: false },
  },
]

describe('a renderer of a family equals the chat template token for token', () => {
  it.each(qwenVariants)('qwen3 %o', (options) => {
    const renderer = createQwen3Renderer(qwen, options)
    const template = compileChatTemplate(qwenTemplate, 'qwen3.jinja', options)
    fc.assert(
      fc.property(conversation, fc.boolean(), fc.boolean(), (messages, hasTools, generationPrompt) => {
        const input = { tools: hasTools ? tools : [], generationPrompt }
        const rendered = renderer.render(messages, input)
        expect(qwen.decode(rendered.ids)).toBe(template.render(messages, input))
        expect([...rendered.ids]).toEqual(qwen.encode(template.render(messages, input)))
      }),
      runs,
    )
  })

  it.each(glmVariants)('$version $options', ({ version, options, variables }) => {
    const renderer = createGlmRenderer(version, glm, options)
    const template = compileChatTemplate(glmTemplate, 'glm-5.jinja', variables)
    fc.assert(
      fc.property(conversation, fc.boolean(), fc.boolean(), (messages, hasTools, generationPrompt) => {
        const input = { tools: hasTools ? tools : [], generationPrompt }
        const rendered = renderer.render(messages, input)
        expect(glm.decode(rendered.ids)).toBe(template.render(messages, input))
        expect([...rendered.ids]).toEqual(glm.encode(template.render(messages, input)))
      }),
      runs,
    )
  })

  it('gives these ids for these messages', () => {
    const messages: Message[] = [
      { role: 'user', content: 'hello world' },
      { role: 'assistant', content: 'hell' },
    ]
    const [end, start, think, unthink] = ['<|im_end|>', '<|im_start|>', '<think>', '</think>'].map((name) => qwen.findId(name))
    // Bytes have their own value as id; 256 is two newlines, 259 "hell", 260 "hello", 261 " w".
    const user = [start, 117, 115, 101, 114, 10, 260, 261, 111, 114, 108, 100, end, 10]
    const assistant = [start, 97, 115, 115, 105, 115, 116, 97, 110, 116, 10, think, 256, unthink, 256, 259, end, 10]
    expect([...createQwen3Renderer(qwen).render(messages).ids]).toEqual([...user, ...assistant])
    expect(glm.decode(createGlmRenderer('glm-5', glm).render(messages, { generationPrompt: true }).ids)).toBe(
      '[gMASK]<sop><|user|>hello world<|assistant|></think>hell<|assistant|><think>',
    )
  })
})

const textOf = (renderer: Rendering, mask: ArrayLike<number>, tokenizer: typeof qwen) =>
  tokenizer.decode([...renderer.ids].filter((_, token) => mask[token] === 1))

const dialogue: Message[] = [
  { role: 'user', content: 'weather?' },
  { role: 'assistant', content: '', reasoning: 'look', toolCalls: [{ name: 'weather', arguments: { city: 'Bern' } }] },
  { role: 'tool', content: 'rain' },
  { role: 'tool', content: 'wind' },
  { role: 'assistant', content: 'It rains.', reasoning: 'done' },
  { role: 'user', content: 'thanks' },
  { role: 'assistant', content: 'hello' },
]

describe('what the model samples', () => {
  it('is the answer of qwen3 with its thinking and its end of turn, not the newline behind', () => {
    const rendered = createQwen3Renderer(qwen).render(dialogue.slice(0, 5))
    expect(textOf(rendered, rendered.sampled, qwen)).toBe(
      '<think>\nlook\n</think>\n\n<tool_call>\n{"name": "weather", "arguments": {"city": "Bern"}}\n</tool_call><|im_end|><think>\ndone\n</think>\n\nIt rains.<|im_end|>',
    )
    const off = createQwen3Renderer(qwen, { enable_thinking: false }).render(dialogue)
    expect(textOf(off, off.sampled, qwen)).toMatch(/It rains\.<\|im_end\|>hello<\|im_end\|>$/)
  })

  it('is for glm the marker of the next role too, because nothing else ends a turn', () => {
    const rendered = createGlmRenderer('glm-5', glm).render(dialogue)
    expect(textOf(rendered, rendered.sampled, glm)).toBe(
      '<tool_call>weather<arg_key>city</arg_key><arg_value>Bern</arg_value></tool_call><|observation|>It rains.<|user|>hello',
    )
    const thinking = createGlmRenderer('glm-5', glm).render(dialogue.slice(0, 5))
    expect(textOf(thinking, thinking.sampled, glm)).toContain('look</think><tool_call>')
    expect(textOf(thinking, thinking.sampled, glm)).not.toContain('<think>')
  })

  it('is found in any template as the renderer of the family knows it', () => {
    const family = createQwen3Renderer(qwen)
    const general = createTemplateRenderer(qwen)
    fc.assert(
      fc.property(conversation, (messages) => {
        const a = family.render(messages)
        const b = general.render(messages)
        expect([...b.ids]).toEqual([...a.ids])
        expect(textOf(b, b.sampled, qwen)).toBe(textOf(a, a.sampled, qwen))
        const roles = { system: false, user: false, assistant: true, tool: false }
        expect(maskByRole(b, roles)).toEqual(maskByRole(a, roles))
      }),
      runs,
    )
  })

  it('masks by role', () => {
    const rendered = createQwen3Renderer(qwen).render(dialogue.slice(0, 4))
    const shown = (role: string) =>
      textOf(rendered, maskByRole(rendered, { system: false, user: false, assistant: false, tool: false, [role]: true }), qwen)
    // The first token is never trained.
    expect(shown('user')).toBe('user\nweather?<|im_end|>\n')
    expect(shown('tool')).toBe(
      '<|im_start|>user\n<tool_response>\nrain\n</tool_response>\n<tool_response>\nwind\n</tool_response><|im_end|>\n',
    )
    expect(shown('system')).toBe('')
  })
})

describe('the next prompt begins with the ids that are there', () => {
  const renderers: readonly (readonly [string, Renderer, typeof qwen])[] = [
    ['qwen3', createQwen3Renderer(qwen, { preserve_all_thinking: true }), qwen],
    ['glm-5.1', createGlmRenderer('glm-5.1', glm, { preserve_all_thinking: true }), glm],
  ]

  it.each(renderers)('%s: a dialogue with tools, turn by turn, equals its full rendering, no separator lost', (_, renderer, tokenizer) => {
    fc.assert(
      fc.property(conversation, (messages) => {
        const rounds: { readonly answer: number; readonly next: Message[] }[] = []
        for (const [index, { role }] of messages.entries()) {
          if (role !== 'assistant') continue
          const rest = messages.slice(index + 1)
          const end = rest.findIndex((message) => message.role === 'assistant')
          rounds.push({ answer: index, next: end === -1 ? rest : rest.slice(0, end) })
        }
        let prompt = renderer.render(messages.slice(0, rounds[0]?.answer ?? messages.length), { generationPrompt: true })
        for (const { answer, next } of rounds) {
          const full = renderer.render(messages.slice(0, answer + 1 + next.length), { generationPrompt: next.length > 0 })
          const sampledEnd = full.ids.findLastIndex((_id, token) => full.messageIndices[token] === answer && full.sampled[token] === 1) + 1
          const completion = full.ids.slice(prompt.ids.length, sampledEnd)
          expect([...full.ids.slice(0, prompt.ids.length)]).toEqual([...prompt.ids])
          if (next.length === 0) break
          const { rendering, broken } = renderer.extend(prompt, completion, next)
          expect(broken).toBeUndefined()
          expect(tokenizer.decode(rendering?.ids ?? [])).toBe(tokenizer.decode(full.ids))
          expect([...(rendering?.ids ?? [])]).toEqual([...full.ids])
          if (rendering === undefined) break
          expect(rendering.roles).toEqual(messages.slice(0, answer + 1 + next.length).map(({ role }) => role))
          expect(
            textOf(rendering, maskByRole(rendering, { system: false, user: false, assistant: true, tool: false }), tokenizer),
          ).toContain(tokenizer.decode(completion))
          prompt = rendering
        }
      }),
      runs,
    )
  })

  it('says where a template that drops past thinking breaks, and keeps the ids all the same when it extends', () => {
    for (const renderer of [createQwen3Renderer(qwen), createTemplateRenderer(qwen), createGlmRenderer('glm-5', glm)]) {
      expect(findExtensionBreak(renderer, dialogue)).toBe(5)
    }
    expect(findExtensionBreak(createQwen3Renderer(qwen, { preserve_all_thinking: true }), dialogue)).toBeUndefined()
    expect(findExtensionBreak(createGlmRenderer('glm-5.1', glm, { preserve_all_thinking: true }), dialogue)).toBeUndefined()
    const renderer = createTemplateRenderer(qwen)
    const first = renderer.render(dialogue.slice(0, 1), { generationPrompt: true })
    const completion = qwen.encode('<think>\nlook\n</think>\n\nIt rains.<|im_end|>')
    const { rendering } = renderer.extend(first, completion, dialogue.slice(5, 6))
    expect(qwen.decode(rendering?.ids ?? [])).toBe(
      '<|im_start|>user\nweather?<|im_end|>\n<|im_start|>assistant\n<think>\nlook\n</think>\n\nIt rains.<|im_end|>\n<|im_start|>user\nthanks<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  const question = [{ role: 'user' as const, content: 'hello' }]
  const extended = (renderer: Renderer, tokenizer: typeof qwen, completion: string, next: readonly Message[]) => {
    const { rendering, broken } = renderer.extend(renderer.render(question, { generationPrompt: true }), tokenizer.encode(completion), next)
    return rendering === undefined ? broken : tokenizer.decode(rendering.ids)
  }

  it('closes a turn that was cut off, and writes no marker twice', () => {
    const user: Message[] = [{ role: 'user', content: 'and?' }]
    const tool: Message[] = [{ role: 'tool', content: 'rain' }]
    const renderer = createGlmRenderer('glm-5', glm)
    const begin = '[gMASK]<sop><|user|>hello<|assistant|><think>'
    const prompt = '<|assistant|><think>'
    expect(extended(renderer, glm, 'a</think>b<|user|>', user)).toBe(`${begin}a</think>b<|user|>and?${prompt}`)
    expect(extended(renderer, glm, 'a</think>b<|endoftext|>', user)).toBe(`${begin}a</think>b<|endoftext|><|user|>and?${prompt}`)
    expect(extended(renderer, glm, 'a</think>b', user)).toBe(`${begin}a</think>b<|endoftext|><|user|>and?${prompt}`)
    expect(extended(renderer, glm, 'b<|observation|>', tool)).toBe(`${begin}b<|observation|><tool_response>rain</tool_response>${prompt}`)
    expect(extended(renderer, glm, 'b<|observation|>', user)).toMatch(/marker of another role/)
    const begun = '<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n'
    const rest = '<|im_end|>\n<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\n'
    for (const qwenRenderer of [createQwen3Renderer(qwen), createTemplateRenderer(qwen)]) {
      expect(extended(qwenRenderer, qwen, 'b<|im_end|>', user)).toBe(`${begun}b${rest}`)
      expect(extended(qwenRenderer, qwen, 'b', user)).toBe(`${begun}b${rest}`)
    }
  })

  it('breaks where tools changed or messages do not follow an answer, and says why', () => {
    const renderer = createQwen3Renderer(qwen)
    const prompt = renderer.render(question, { generationPrompt: true, tools })
    const completion = qwen.encode('b<|im_end|>')
    expect(renderer.extend(prompt, completion, question, { tools }).broken).toBeUndefined()
    expect(renderer.extend(prompt, completion, question).broken).toBe('the tools changed')
    expect(renderer.extend(prompt, completion, [], { tools }).broken).toBe('no message follows')
    expect(renderer.extend(prompt, completion, [{ role: 'assistant', content: 'x' }], { tools }).broken).toMatch(/assistant follows/)
    expect(renderer.extend(prompt, completion, [...question, { role: 'tool', content: 'x' }], { tools }).broken).toMatch(
      /follow that of the user/,
    )
  })
})

describe('bad input', () => {
  it('writes arguments that are no JSON as the text that they are', () => {
    const messages = parseMessages(
      [
        { role: 'user', content: [{ type: 'text', text: 'hello' }] },
        { role: 'assistant', content: null, tool_calls: [{ id: '1', function: { name: 'weather', arguments: '{"a": "x "y""}' } }] },
      ],
      'row',
    )
    const rendered = createQwen3Renderer(qwen).render(messages)
    expect(qwen.decode(rendered.ids)).toContain('"arguments": {"a": "x "y""}}')
    expect(glm.decode(createGlmRenderer('glm-5', glm).render(messages).ids)).toContain('<tool_call>weather{"a": "x "y""}</tool_call>')
  })

  it('needs the tokens of the family', () => {
    expect(() => createGlmRenderer('glm-5', qwen)).toThrow(
      expect.objectContaining({ code: 'TOKENIZER_INVALID', message: expect.stringContaining('<sop>') }),
    )
  })

  it('refuses what is no conversation', () => {
    const problem = (value: unknown) => {
      try {
        parseMessages(value, 'messages')
      } catch (error) {
        return TrilithonError.is(error, 'MESSAGES_INVALID') ? error.message : 'another error'
      }
      return 'no error'
    }
    expect(problem([{ role: 'critic', content: 'x' }])).toMatch(/messages\.0\.role/)
    expect(problem([{ role: 'user', content: [{ type: 'image_url', image_url: 'x' }] }])).toMatch(/messages\.0\.content/)
    expect(problem({})).toMatch(/messages/)
    expect(parseMessages('hello', 'prompt')).toEqual([{ role: 'user', content: 'hello' }])
  })
})
