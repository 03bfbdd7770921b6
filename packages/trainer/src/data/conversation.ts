import { TrilithonError } from '@trilithon/core'
import { type Message, parseMessages, type ToolDefinition } from '@trilithon/renderers'

/** Columns of a data set that are read. */
export const rowColumns = ['messages', 'prompt', 'completion', 'tools', 'tool_defs'] as const

export interface Conversation {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

/**
 * A row with `messages`, or with `prompt` and `completion` (text or messages); `messages` wins. `tools` or `tool_defs` are a list, or a list as JSON
 * text. Throws `MESSAGES_INVALID`.
 */
export function parseConversation(row: unknown): Conversation {
  if (typeof row !== 'object' || row === null || Array.isArray(row)) throw rowFault('the row is no object')
  const { messages, prompt, completion, tools, tool_defs: definitions } = row as Partial<Record<(typeof rowColumns)[number], unknown>>
  const conversation = { tools: parseTools(tools ?? definitions) }
  if (messages != null) return { ...conversation, messages: refuseEmpty(parseMessages(messages, 'messages', 'assistant')) }
  if (prompt == null || completion == null) {
    const missing =
      prompt == null && completion == null ? 'neither messages nor prompt and completion' : `no ${prompt == null ? 'prompt' : 'completion'}`
    throw rowFault(`the row has ${missing}; its keys are ${Object.keys(row).join(', ') || 'none'}`)
  }
  const begin = parseMessages(prompt, 'prompt', 'user')
  return { ...conversation, messages: refuseEmpty([...begin, ...parseMessages(completion, 'completion', 'assistant')]) }
}

function refuseEmpty(messages: Message[]): Message[] {
  if (messages.length === 0) throw rowFault('the row has no message')
  return messages
}

function parseTools(value: unknown): ToolDefinition[] {
  if (value == null || value === '') return []
  let list = value
  if (typeof value === 'string') {
    try {
      list = JSON.parse(value)
    } catch (cause) {
      throw rowFault(`tools is no JSON: ${(cause as Error).message}`)
    }
  }
  if (!Array.isArray(list) || list.some((tool) => typeof tool !== 'object' || tool === null))
    throw rowFault('tools is no list of definitions')
  return list.map(toFunction)
}

/** A bare definition (name, description, parameters) gets the envelope that templates expect. */
function toFunction(tool: Record<string, unknown>): ToolDefinition {
  const { function: wrapped, name, description, parameters, strict } = tool
  if (typeof wrapped === 'object') return tool
  return { type: 'function', function: { name, description, parameters, ...(strict == null ? {} : { strict }) } }
}

function rowFault(reason: string): TrilithonError {
  return new TrilithonError('MESSAGES_INVALID', reason, { hint: 'Rows have "messages", or "prompt" and "completion".' })
}
