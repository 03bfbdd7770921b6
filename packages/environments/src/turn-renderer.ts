/** One message that an environment sends. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string
  readonly toolCallId?: string
  readonly name?: string
}

/** Token ids of a prompt. A renderer keeps what else it knows of them in the same object. */
export interface RenderedPrompt {
  readonly ids: Uint32Array
}

/** The next prompt, or why it cannot begin with the ids that are there. */
export type PromptExtension =
  | { readonly prompt: RenderedPrompt; readonly broken?: undefined }
  | { readonly prompt?: undefined; readonly broken: string }

/** Messages to token ids for one model. Environments cannot know renderers, so the entrance of a worker process hands one over. */
export interface TurnRenderer {
  /** Token ids that end a turn. */
  readonly stopIds: readonly number[]
  /** Ends with what stands before an answer. */
  render(messages: readonly ChatMessage[]): RenderedPrompt
  /** Begins with exactly the ids of `previous` and its answer; nothing that was sampled is turned into text and back. */
  extend(previous: RenderedPrompt, completionIds: Uint32Array, next: readonly ChatMessage[]): PromptExtension
  decode(ids: Uint32Array): string
}

/** Plain JSON that says which renderer: it travels with each request, so that one server serves any model. */
export interface RendererDescription {
  /** The table `renderer` of the configuration; null takes the chat template of the model. */
  readonly config: Readonly<Record<string, unknown>> | null
  /** Folder of the tokeniser. */
  readonly tokenizer: string
  /** Name of the model, by which `auto` chooses. */
  readonly model: string
  /** Chat template in place of the tokeniser's: its text, and where it came from. */
  readonly chatTemplate?: { readonly text: string; readonly file: string } | null
}

export type CreateTurnRenderer = (description: RendererDescription) => TurnRenderer | Promise<TurnRenderer>
