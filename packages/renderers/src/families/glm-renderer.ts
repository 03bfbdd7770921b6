import type { Message, ToolDefinition } from '../messages.ts'
import { pythonJson } from '../python-json.ts'
import { splitThinking } from '../render/split-thinking.ts'
import { requireTokens, TokenWriter } from '../render/token-writer.ts'
import { type Extension, extensionFault, type Renderer } from '../renderer.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'
import type { ThinkingOptions } from './thinking-options.ts'

const names = [
  '[gMASK]',
  '<sop>',
  '<|endoftext|>',
  '<|system|>',
  '<|user|>',
  '<|assistant|>',
  '<|observation|>',
  '<think>',
  '</think>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
  '<arg_key>',
  '</arg_key>',
  '<arg_value>',
  '</arg_value>',
] as const

/**
 * GLM-5 and GLM-5.1 by their templates. No token ends a turn: the marker of the next role does, and it is what a model samples to stop. So a marker
 * behind an answer counts as the answer's. (An absent content is no text here; the template would print "None".)
 */
export function createGlmRenderer(version: 'glm-5' | 'glm-5.1', tokenizer: Tokenizer, options: ThinkingOptions = {}): Renderer {
  const id = requireTokens(tokenizer, version, names)
  const isThinkingOff = options.enable_thinking === false
  const keepsAll = options.preserve_all_thinking ?? false
  const keepsThinking = keepsAll || options.clear_thinking === false
  const opener = { user: id['<|user|>'], system: id['<|system|>'], tool: id['<|observation|>'] }
  const specText = (tool: ToolDefinition) => pythonJson(version === 'glm-5.1' ? bareTool(tool) : tool)

  const writePrompt = (writer: TokenWriter) => writer.token(id['<|assistant|>']).token(isThinkingOff ? id['</think>'] : id['<think>'])

  const writeThinking = (writer: TokenWriter, index: number, reasoning: string, isCurrent: boolean) => {
    const isShown = (isCurrent || keepsThinking) && reasoning !== ''
    const isEmptyShown = version === 'glm-5.1' && (isCurrent || keepsAll) && !isThinkingOff
    if (!isShown && !isEmptyShown) {
      writer.token(id['</think>']).attribute(index, true)
      return
    }
    writer.token(id['<think>']).attribute(index, true)
    if (isShown) writer.text(reasoning.trim())
    writer.token(id['</think>'])
  }
  const writeAnswer = (writer: TokenWriter, index: number, message: Message, isCurrent: boolean) => {
    const { reasoning, content } = splitThinking(message, 'nothing')
    writer.attribute(index).token(id['<|assistant|>'])
    writeThinking(writer, index, reasoning, isCurrent)
    writer.text(content.trim())
    for (const call of message.toolCalls ?? []) {
      writer.token(id['<tool_call>']).text(call.name)
      // Text that is no JSON object stands as it was written.
      if (typeof call.arguments === 'string') writer.text(call.arguments)
      else
        for (const [key, value] of Object.entries(call.arguments)) {
          writer.token(id['<arg_key>']).text(key).token(id['</arg_key>'])
          writer
            .token(id['<arg_value>'])
            .text(typeof value === 'string' ? value : pythonJson(value))
            .token(id['</arg_value>'])
        }
      writer.token(id['</tool_call>'])
    }
  }
  /** What stands behind the marker of the role. */
  const writeBody = (writer: TokenWriter, { role, content }: Message) => {
    if (role === 'tool') writer.token(id['<tool_response>']).text(content).token(id['</tool_response>'])
    else writer.text(content)
  }
  const needsOpener = (message: Message, before: Message | undefined) => message.role !== 'tool' || before?.role !== 'tool'
  const openerOf = ({ role }: Message) => opener[role === 'assistant' ? 'user' : role]

  return {
    name: version,
    stopIds: [id['<|endoftext|>'], id['<|user|>'], id['<|observation|>']],
    render(messages, { tools = [], generationPrompt = false } = {}) {
      const writer = new TokenWriter(tokenizer).token(id['[gMASK]']).token(id['<sop>'])
      if (tools.length > 0) writer.token(id['<|system|>']).text(toolsText(tools.map(specText)))
      const lastUser = messages.findLastIndex(({ role }) => role === 'user')
      for (const [index, message] of messages.entries()) {
        if (message.role === 'assistant') {
          writeAnswer(writer, index, message, index > lastUser)
          continue
        }
        const before = messages[index - 1]
        if (needsOpener(message, before)) {
          const endsAnswer = before?.role === 'assistant' && message.role !== 'system'
          writer.attribute(endsAnswer ? index - 1 : index, endsAnswer).token(openerOf(message))
        }
        writeBody(writer.attribute(index), message)
      }
      if (generationPrompt) writePrompt(writer.attribute(-1))
      return writer.finish(messages, tools)
    },
    extend(previous, completionIds, next, { tools = [] } = {}): Extension {
      const broken = extensionFault(previous, next, tools)
      const [first] = next
      if (broken !== undefined || first === undefined) return { broken: broken ?? 'no message follows' }
      const answer = previous.roles.length
      const last = completionIds[completionIds.length - 1]
      const isOpened = last === openerOf(first)
      if (!isOpened && (last === id['<|user|>'] || last === id['<|observation|>']))
        return { broken: `the answer ended by the marker of another role than ${first.role}` }
      const writer = new TokenWriter(tokenizer, previous).attribute(answer, true).tokens(completionIds).attribute(answer)
      if (!isOpened && last !== id['<|endoftext|>']) writer.token(id['<|endoftext|>'])
      for (const [index, message] of next.entries()) {
        writer.attribute(answer + 1 + index)
        if (index === 0 ? !isOpened : needsOpener(message, next[index - 1])) writer.token(openerOf(message))
        writeBody(writer, message)
      }
      writePrompt(writer.attribute(-1))
      return { rendering: writer.finish([...previous.roles.map((role) => ({ role })), { role: 'assistant' }, ...next], tools) }
    },
  }
}

/** The definition without its envelope and without keys that are not for the model. */
function bareTool(tool: ToolDefinition): unknown {
  const { function: wrapped } = tool
  const inner = typeof wrapped === 'object' && wrapped !== null ? wrapped : tool
  return Object.fromEntries(Object.entries(inner).filter(([key]) => key !== 'defer_loading' && key !== 'strict'))
}

function toolsText(specs: readonly string[]): string {
  return (
    '\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' +
    'You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n' +
    specs.map((spec) => `${spec}\n`).join('') +
    '</tools>\n\nFor each function call, output the function name and arguments within the following XML format:\n' +
    '<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>' +
    '<arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>...</tool_call>'
  )
}
