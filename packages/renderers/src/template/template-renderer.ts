import { TrilithonError } from '@trilithon/core'
import type { Message, ToolDefinition } from '../messages.ts'
import { TokenWriter } from '../render/token-writer.ts'
import { type Extension, extensionFault, type Renderer } from '../renderer.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'
import { type ChatTemplate, compileChatTemplate, templateInvalid } from './chat-template.ts'

/** Stands for a text while we look where the template puts it; in no real text. */
const marker = '\uE000\uE001\uE000'

export interface TemplateRendererOptions {
  /** Instead of the template of the tokeniser. */
  readonly chatTemplate?: { readonly text: string; readonly file: string } | undefined
  /** Switches that the template knows, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>
}

/**
 * Any chat template. The text is the template's own; where each message stands in it is found by rendering once more per message with that message
 * changed, which also holds for templates that rewrite history. Encoded is piece by piece: a message, and an answer apart from what stands before it,
 * because that is where sampling begins. Throws `CHAT_TEMPLATE_INVALID` where there is none.
 */
export function createTemplateRenderer(tokenizer: Tokenizer, { chatTemplate, variables = {} }: TemplateRendererOptions = {}): Renderer {
  const source = chatTemplate ?? tokenizer.chatTemplate
  if (source === undefined) throw templateInvalid('the tokeniser', 'it has no chat template')
  refuseTextPrefix(tokenizer)
  const template = compileChatTemplate(source.text, source.file, { ...tokenizer.specialTokens, ...variables })
  const stops = [...tokenizer.addedTokens].filter(([, id]) => tokenizer.stopIds.includes(id)).map(([text]) => text)

  return {
    name: 'default',
    stopIds: tokenizer.stopIds,
    render(messages, { tools = [], generationPrompt = false } = {}) {
      const text = template.render(messages, { tools })
      const prompt = promptText(template, messages, tools)
      const writer = new TokenWriter(tokenizer)
      let at = 0
      const bodies = findBodies(template, messages, tools, text)
      for (const [index, message] of messages.entries()) {
        const body = bodies[index] ?? { start: at, end: at }
        const end = endOfMessage(text, body.end, bodies[index + 1]?.start ?? text.length, index === messages.length - 1, stops)
        const gap = text.slice(at, body.start)
        if (message.role === 'assistant') {
          const sampledFrom = at + afterPrompt(gap, prompt)
          writer.attribute(index).text(text.slice(at, sampledFrom))
          writer.attribute(index, true).text(text.slice(sampledFrom, end.stop))
          writer.attribute(index).text(text.slice(end.stop, end.message))
        } else {
          writer.attribute(index).text(text.slice(at, end.message))
        }
        at = end.message
      }
      writer.attribute(-1).text(text.slice(at))
      if (generationPrompt) writer.text(prompt)
      return writer.finish(messages, tools)
    },
    extend(previous, completionIds, next, { tools = [] } = {}): Extension {
      const broken = extensionFault(previous, next, tools)
      if (broken !== undefined) return { broken }
      const continuation = findContinuation(template, next, tools, stops)
      if (continuation === undefined) return { broken: `${source.file} has no continuation for these messages` }
      const answer = previous.roles.length
      const writer = new TokenWriter(tokenizer, previous).attribute(answer, true).tokens(completionIds).attribute(answer)
      // The stop token that ended the answer is not written twice.
      const stop = stops.find((text) => continuation.startsWith(text))
      const isClosed = stop !== undefined && completionIds[completionIds.length - 1] === tokenizer.findId(stop)
      writer.text(isClosed ? continuation.slice(stop.length) : continuation)
      const roles = [...previous.roles, 'assistant' as const, ...next.map(({ role }) => role)]
      return { rendering: attributeNext(writer.finish([], tools), previous.ids.length + completionIds.length, answer, roles) }
    },
  }
}

/** What follows an answer is not split further: it belongs to the first message that follows, and is never trained. */
function attributeNext(
  rendering: ReturnType<TokenWriter['finish']>,
  from: number,
  answer: number,
  roles: ReturnType<Renderer['render']>['roles'],
) {
  const messageIndices = rendering.messageIndices.map((index, token) => (token < from ? index : answer + 1))
  return { ...rendering, messageIndices, roles }
}

/** Where the content of each message stands in the text; past the end of the one before where the template leaves it out. */
function findBodies(template: ChatTemplate, messages: readonly Message[], tools: readonly ToolDefinition[], text: string) {
  const bodies: { readonly start: number; readonly end: number }[] = []
  let before = 0
  for (const [index, message] of messages.entries()) {
    const changed = renderChanged(template, messages, index, message, tools)
    let start = commonPrefix(text, changed)
    let end = text.length - commonSuffix(text, changed, start)
    if (text === changed) start = end = before
    start = Math.max(start, before)
    end = Math.max(end, start)
    bodies.push({ start, end })
    before = end
  }
  return bodies
}

function renderChanged(
  template: ChatTemplate,
  messages: readonly Message[],
  index: number,
  message: Message,
  tools: readonly ToolDefinition[],
): string {
  const render = (changed: Message) => template.render(messages.with(index, changed), { tools })
  const { toolCalls, ...plain } = message
  const bare: Message = { ...plain, content: marker, reasoning: undefined }
  if (toolCalls === undefined) return render(bare)
  try {
    return render(bare)
  } catch (error) {
    // Some templates want a call before each result; then the calls stay, under another name.
    if (!TrilithonError.is(error)) throw error
    return render({ ...bare, toolCalls: toolCalls.map((call) => ({ ...call, name: marker, arguments: { [marker]: marker } })) })
  }
}

/** An answer ends behind its stop token; what follows up to the next message's header is whitespace of the template. */
function endOfMessage(text: string, bodyEnd: number, nextStart: number, isLast: boolean, stops: readonly string[]) {
  const gap = text.slice(bodyEnd, nextStart)
  const first = firstStop(gap, stops)
  if (first === undefined) {
    const end = isLast ? text.length : bodyEnd
    return { stop: isLast ? bodyEnd + gap.trimEnd().length : end, message: end }
  }
  const stop = bodyEnd + first.at + first.stop.length
  const spaces = /^\s*/.exec(text.slice(stop, nextStart))?.[0].length ?? 0
  return { stop, message: stop + spaces }
}

/** What the template adds for an answer to begin. */
function promptText(template: ChatTemplate, messages: readonly Message[], tools: readonly ToolDefinition[]): string {
  const without = template.render(messages, { tools })
  const withPrompt = template.render(messages, { tools, generationPrompt: true })
  if (!withPrompt.startsWith(without)) throw templateInvalid(template.file, 'its generation prompt does not follow the messages')
  return withPrompt.slice(without.length)
}

/** Length of the part of `gap` that ends with the generation prompt, or with as much of its beginning as is there. */
function afterPrompt(gap: string, prompt: string): number {
  for (let length = prompt.length; length > 0; length--) {
    const at = gap.lastIndexOf(prompt.slice(0, length))
    if (at !== -1) return at + length
  }
  return gap.length
}

/**
 * The text from the end of an answer to the next generation prompt, found in a conversation of which only the end counts. Where results of tools only
 * follow calls, the calls that we make up end at the stop token.
 */
function findContinuation(
  template: ChatTemplate,
  next: readonly Message[],
  tools: readonly ToolDefinition[],
  stops: readonly string[],
): string | undefined {
  const question: Message = { role: 'user', content: 'x' }
  const answer: Message = { role: 'assistant', content: marker }
  const behindMarker = (messages: readonly Message[]): string | undefined => {
    const text = findText(template, messages, tools)
    const at = text?.lastIndexOf(marker) ?? -1
    return at === -1 ? undefined : text?.slice(at + marker.length)
  }
  const plain = behindMarker([question, answer, ...next])
  if (plain !== undefined) return plain
  const calls = next.filter(({ role }) => role === 'tool').map(({ toolCallId }) => ({ id: toolCallId ?? 'call', name: 'x', arguments: {} }))
  if (calls.length === 0) return undefined
  const called = behindMarker([question, { ...answer, toolCalls: calls }, ...next])
  const stop = called === undefined ? undefined : firstStop(called, stops)
  return stop === undefined ? undefined : called?.slice(stop.at)
}

/** The rendered text, or undefined where the template refuses or fails. */
function findText(template: ChatTemplate, messages: readonly Message[], tools: readonly ToolDefinition[]): string | undefined {
  try {
    return template.render(messages, { tools, generationPrompt: true })
  } catch (error) {
    if (TrilithonError.is(error)) return undefined
    throw error
  }
}

function firstStop(text: string, stops: readonly string[]): { readonly stop: string; readonly at: number } | undefined {
  const found = stops.map((stop) => ({ stop, at: text.indexOf(stop) })).filter(({ at }) => at !== -1)
  return found.sort((a, b) => a.at - b.at)[0]
}

function commonPrefix(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  let index = 0
  while (index < length && a.charCodeAt(index) === b.charCodeAt(index)) index++
  return index
}

/** Never reaching back over `from` in `a`, nor over the same length in `b`. */
function commonSuffix(a: string, b: string, from: number): number {
  const length = Math.min(a.length, b.length) - from
  let index = 0
  while (index < length && a.charCodeAt(a.length - 1 - index) === b.charCodeAt(b.length - 1 - index)) index++
  return index
}

/** Text is encoded in pieces, so a tokeniser that writes a space before each text would write one too many. */
function refuseTextPrefix(tokenizer: Tokenizer): void {
  const [special] = tokenizer.addedTokens.keys()
  const probe = [...'a0'].find((text) => {
    try {
      return tokenizer.encode(text).length > 0
    } catch (error) {
      if (TrilithonError.is(error, 'TEXT_NOT_ENCODABLE')) return false
      throw error
    }
  })
  if (special === undefined || probe === undefined) return
  const behind = tokenizer.encode(`${special}${probe}`).slice(1)
  if (behind.join() === tokenizer.encode(probe).join()) return
  throw new TrilithonError('FEATURE_UNAVAILABLE', 'the tokeniser writes a space before each text, and messages are encoded in pieces', {
    path: 'renderer',
    hint: 'Use a model whose tokeniser works on bytes.',
  })
}
