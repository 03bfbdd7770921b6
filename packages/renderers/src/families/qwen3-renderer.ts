import type { Message, ToolCall, ToolDefinition } from '../messages.ts'
import { pythonJson } from '../python-json.ts'
import { splitThinking } from '../render/split-thinking.ts'
import { requireTokens, TokenWriter } from '../render/token-writer.ts'
import { type Extension, extensionFault, type Renderer } from '../renderer.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'
import type { ThinkingOptions } from './thinking-options.ts'

const names = ['<|im_start|>', '<|im_end|>', '<|endoftext|>', '<think>', '</think>', '<tool_call>', '</tool_call>'] as const

/**
 * Qwen3 by its own template, token for token. Past thinking is dropped before the last message of the user, as the template does; with
 * `preserve_all_thinking` every answer keeps its block of thinking, also an empty one, and renderings extend each other.
 */
export function createQwen3Renderer(tokenizer: Tokenizer, options: ThinkingOptions = {}): Renderer {
  const id = requireTokens(tokenizer, 'qwen3', names)
  const keepsAll = options.preserve_all_thinking ?? false
  const isThinkingOff = options.enable_thinking === false

  const writePrompt = (writer: TokenWriter) => {
    writer.token(id['<|im_start|>']).text('assistant\n')
    if (isThinkingOff) writer.text('<think>\n\n</think>\n\n')
  }
  const writeAnswer = (writer: TokenWriter, index: number, message: Message, thinking: 'none' | 'kept' | 'block') => {
    const { reasoning, content } = splitThinking(message, '\n')
    const hasBlock = thinking === 'block' || (thinking === 'kept' && reasoning !== '')
    writer.attribute(index).token(id['<|im_start|>']).text('assistant\n')
    // An empty block is part of the generation prompt where thinking is off, and sampled where it is on.
    if (hasBlock && isThinkingOff && reasoning === '') writer.text('<think>\n\n</think>\n\n').attribute(index, true)
    else {
      writer.attribute(index, true)
      if (hasBlock) writer.text(`<think>\n${trimNewlines(reasoning)}\n</think>\n\n`)
    }
    writer.text(hasBlock ? content.replace(/^\n+/, '') : content)
    for (const [number, call] of (message.toolCalls ?? []).entries()) {
      if (number > 0 || content !== '') writer.text('\n')
      writer.text(`<tool_call>\n{"name": "${call.name}", "arguments": ${argumentsText(call)}}\n</tool_call>`)
    }
    writer.token(id['<|im_end|>']).attribute(index).text('\n')
  }
  const writeToolResult = (writer: TokenWriter, index: number, content: string, isFirst: boolean, isLast: boolean) => {
    writer.attribute(index)
    if (isFirst) writer.token(id['<|im_start|>']).text('user')
    writer.text(`\n<tool_response>\n${content}\n</tool_response>`)
    if (isLast) writer.token(id['<|im_end|>']).text('\n')
  }
  const writeOther = (writer: TokenWriter, index: number, { role, content }: Message) =>
    writer.attribute(index).token(id['<|im_start|>']).text(`${role}\n${content}`).token(id['<|im_end|>']).text('\n')

  /** Messages but answers, the first of them at `offset` in the conversation. */
  const writeRun = (writer: TokenWriter, messages: readonly Message[], index: number, offset: number) => {
    const message = messages[index]
    if (message === undefined) return
    if (message.role !== 'tool') writeOther(writer, offset + index, message)
    else {
      const isFirst = messages[index - 1]?.role !== 'tool'
      writeToolResult(writer, offset + index, message.content, isFirst, messages[index + 1]?.role !== 'tool')
    }
  }

  return {
    name: 'qwen3',
    stopIds: [id['<|im_end|>'], id['<|endoftext|>']],
    render(messages, { tools = [], generationPrompt = false } = {}) {
      const writer = new TokenWriter(tokenizer)
      const system = messages[0]?.role === 'system' ? messages[0] : undefined
      if (tools.length > 0) {
        writer.token(id['<|im_start|>']).text('system\n')
        // One message holds both; what the user wrote of it is the user's.
        if (system !== undefined) writer.attribute(0).text(`${system.content}\n\n`).attribute(-1)
        writer.text(toolsText(tools)).token(id['<|im_end|>']).text('\n')
      }
      const lastQuery = messages.findLastIndex(isQuery)
      for (const [index, message] of messages.entries()) {
        if (index === 0 && system !== undefined && tools.length > 0) continue
        if (message.role !== 'assistant') writeRun(writer, messages, index, 0)
        else if (keepsAll) writeAnswer(writer, index, message, 'block')
        else if (index <= lastQuery) writeAnswer(writer, index, message, 'none')
        else writeAnswer(writer, index, message, index === messages.length - 1 ? 'block' : 'kept')
      }
      if (generationPrompt) writePrompt(writer.attribute(-1))
      return writer.finish(messages, tools)
    },
    extend(previous, completionIds, next, { tools = [] } = {}): Extension {
      const broken = extensionFault(previous, next, tools)
      if (broken !== undefined) return { broken }
      const answer = previous.roles.length
      const writer = new TokenWriter(tokenizer, previous).attribute(answer, true).tokens(completionIds).attribute(answer)
      if (completionIds[completionIds.length - 1] !== id['<|im_end|>']) writer.token(id['<|im_end|>'])
      writer.text('\n')
      for (const index of next.keys()) writeRun(writer, next, index, answer + 1)
      writePrompt(writer.attribute(-1))
      return { rendering: writer.finish([...previous.roles.map((role) => ({ role })), { role: 'assistant' }, ...next], tools) }
    },
  }
}

/** A question of the user, and not the results of tools that stand in a message of the user. */
function isQuery({ role, content }: Message): boolean {
  return role === 'user' && !(content.startsWith('<tool_response>') && content.endsWith('</tool_response>'))
}

function trimNewlines(text: string): string {
  return text.replace(/^\n+|\n+$/g, '')
}

function argumentsText(call: ToolCall): string {
  return typeof call.arguments === 'string' ? call.arguments : pythonJson(call.arguments)
}

function toolsText(tools: readonly ToolDefinition[]): string {
  return (
    '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' +
    'You are provided with function signatures within <tools></tools> XML tags:\n<tools>' +
    tools.map((tool) => `\n${pythonJson(tool)}`).join('') +
    '\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n' +
    '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
  )
}
