import type { Message, MessageRole, ToolDefinition } from './messages.ts'

export interface RenderOptions {
  readonly tools?: readonly ToolDefinition[] | undefined
  /** End with what stands before an answer, so that a model can go on from there. */
  readonly generationPrompt?: boolean
}

/** Token ids of a conversation, each with the message that it belongs to. All three arrays have one entry per token. */
export interface Rendering {
  readonly ids: Uint32Array
  /** Index into `messages`; -1 for what belongs to none: the start of the text, tool definitions, the generation prompt. */
  readonly messageIndices: Int32Array
  /**
   * 1 for what the model itself writes when the message is its answer: everything after the generation prompt up to the token that ends the
   * turn. The header of an answer and the whitespace after its end are not sampled.
   */
  readonly sampled: Uint8Array
  /** One per message, so that a mask by role needs nothing else. After `extend` the answer counts as a message. */
  readonly roles: readonly MessageRole[]
  readonly tools: readonly ToolDefinition[]
}

/** The ids of the next prompt, or why they cannot begin with the ids that are there. */
export type Extension =
  | { readonly rendering: Rendering; readonly broken?: undefined }
  | { readonly rendering?: undefined; readonly broken: string }

/** Turns messages into token ids. One that is stored or sampled once is never turned into text and back. */
export interface Renderer {
  readonly name: string
  /** Token ids that end a turn. */
  readonly stopIds: readonly number[]
  render(messages: readonly Message[], options?: RenderOptions): Rendering
  /**
   * The next prompt after `previous` (rendered with its generation prompt) was answered by `completionIds`: it begins with exactly these ids, and
   * `next` follows with a generation prompt. Broken, with the reason, where the template has no such continuation; then a new sample begins.
   */
  extend(
    previous: Rendering,
    completionIds: ArrayLike<number>,
    next: readonly Message[],
    options?: { readonly tools?: readonly ToolDefinition[] },
  ): Extension
}

/** Roles whose tokens are trained. */
export type RoleMask = Readonly<Record<MessageRole, boolean>>

/**
 * The loss mask by role: of an answer what the model writes, of any other message all of it. The first token is never trained, nothing predicts it.
 */
export function maskByRole({ ids, messageIndices, sampled, roles }: Rendering, trained: RoleMask): Uint8Array {
  const mask = new Uint8Array(ids.length)
  for (let token = 1; token < ids.length; token++) {
    const role = roles[messageIndices[token] ?? -1]
    if (role !== undefined && trained[role] && (role !== 'assistant' || sampled[token] === 1)) mask[token] = 1
  }
  return mask
}

/**
 * The extension property: the first number of messages whose rendering does not begin the rendering of the next step, or undefined where each begins
 * the next. A template that rewrites history (drops the thinking of past turns) breaks it.
 */
export function findExtensionBreak(renderer: Renderer, messages: readonly Message[], options: RenderOptions = {}): number | undefined {
  // Results of tools that follow each other are one step: templates write them into one turn.
  const isStep = (count: number) => messages[count - 1]?.role !== 'tool' || messages[count]?.role !== 'tool'
  let shorter: Uint32Array = new Uint32Array()
  let before = 0
  for (let count = 1; count <= messages.length; count++) {
    if (!isStep(count)) continue
    const longer = renderer.render(messages.slice(0, count), options).ids
    if (!shorter.every((id, token) => longer[token] === id)) return before
    shorter = longer
    before = count
  }
  return undefined
}

/** Why `next` cannot follow an answer, or undefined: first results of tools, then at most one message of the user, under the same tools. */
export function extensionFault(previous: Rendering, next: readonly Message[], tools: readonly ToolDefinition[]): string | undefined {
  if (JSON.stringify(previous.tools) !== JSON.stringify(tools)) return 'the tools changed'
  if (next.length === 0) return 'no message follows'
  const firstOther = next.findIndex(({ role }) => role !== 'tool')
  if (firstOther === -1) return undefined
  const other = next[firstOther]
  if (other?.role !== 'user') return `a message of the role ${other?.role} follows an answer`
  if (firstOther !== next.length - 1) return 'messages follow that of the user'
  return undefined
}
