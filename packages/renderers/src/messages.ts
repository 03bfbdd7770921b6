import { TrilithonError } from '@trilithon/core'
import { z } from 'zod'

export const messageRoles = ['system', 'user', 'assistant', 'tool'] as const
export type MessageRole = (typeof messageRoles)[number]

/** JSON of a tool definition, passed on as it is. */
export type ToolDefinition = Readonly<Record<string, unknown>>

export interface ToolCall {
  readonly id?: string | undefined
  readonly name: string
  /** Parsed arguments; text that is no JSON object stays text, because a model may have written it so. */
  readonly arguments: Readonly<Record<string, unknown>> | string
}

/** One message of a conversation, in one shape: text is text, arguments are parsed, what is absent is undefined. */
export interface Message {
  readonly role: MessageRole
  readonly content: string
  readonly reasoning?: string | undefined
  readonly toolCalls?: readonly ToolCall[] | undefined
  readonly toolCallId?: string | undefined
  readonly name?: string | undefined
}

const TextParts = z.array(z.looseObject({ type: z.literal('text'), text: z.string() }))
const CallFunction = z.looseObject({
  name: z.string().min(1),
  arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
})
const Call = z.union([
  z.looseObject({ id: z.string().nullish(), function: CallFunction }),
  CallFunction.extend({ id: z.string().nullish() }),
])
const MessageJson = z.looseObject({
  role: z.enum(messageRoles),
  content: z.union([z.string(), TextParts]).nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(Call).nullish(),
  tool_call_id: z.string().nullish(),
  name: z.string().nullish(),
})

/**
 * Messages as the OpenAI API writes them. A text alone is one message of `roleOfText`. Throws `MESSAGES_INVALID` with the place below `where`.
 */
export function parseMessages(value: unknown, where: string, roleOfText: MessageRole = 'user'): Message[] {
  if (typeof value === 'string') return [{ role: roleOfText, content: value }]
  const parsed = z.array(MessageJson).safeParse(value)
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${[where, ...path].join('.')}: ${message}`)
    throw new TrilithonError('MESSAGES_INVALID', faults.join('; '), {
      path: where,
      hint: `Write a list of messages with a role (${messageRoles.join(', ')}) and a content of text.`,
    })
  }
  return parsed.data.map(toMessage)
}

function toMessage(json: z.output<typeof MessageJson>): Message {
  const { role, content, reasoning_content: reasoning, tool_calls: calls, tool_call_id: toolCallId, name } = json
  return {
    role,
    content: typeof content === 'string' ? content : (content ?? []).map(({ text }) => text).join(''),
    ...(reasoning ? { reasoning } : {}),
    ...(calls != null && calls.length > 0 ? { toolCalls: calls.map(toCall) } : {}),
    ...(toolCallId != null ? { toolCallId } : {}),
    ...(name != null ? { name } : {}),
  }
}

function toCall(json: z.output<typeof Call>): ToolCall {
  const call = CallFunction.parse('function' in json ? json.function : json)
  return { ...(json.id != null ? { id: json.id } : {}), name: call.name, arguments: parseArguments(call.arguments ?? {}) }
}

function parseArguments(value: string | Record<string, unknown>): ToolCall['arguments'] {
  if (typeof value !== 'string') return value
  try {
    const json: unknown = JSON.parse(value)
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>
    return value
  } catch (error) {
    if (error instanceof SyntaxError) return value
    throw error
  }
}

/** The message as chat templates expect it. */
export function toTemplateMessage(message: Message): Record<string, unknown> {
  const { role, content, reasoning, toolCalls, toolCallId, name } = message
  return {
    role,
    content,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(toolCalls === undefined
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            ...(call.id === undefined ? {} : { id: call.id }),
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
    ...(name === undefined ? {} : { name }),
  }
}
