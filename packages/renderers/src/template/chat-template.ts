import { Template } from '@huggingface/jinja'
import { TrilithonError } from '@trilithon/core'
import { type Message, type ToolDefinition, toTemplateMessage } from '../messages.ts'

/** Name under which templates call `raise_exception`: the library fixes its own, which cannot be told from a fault of the template. */
const refuse = 'trilithon_refuse'

export interface TemplateInput {
  readonly tools?: readonly ToolDefinition[] | undefined
  readonly generationPrompt?: boolean
}

/** A chat template of Jinja that turns messages into one text. */
export interface ChatTemplate {
  readonly file: string
  /** Throws `MESSAGES_INVALID` where the template refuses the messages, `CHAT_TEMPLATE_INVALID` where it fails. */
  render(messages: readonly Message[], input?: TemplateInput): string
}

/**
 * `variables` are what the template sees beside the messages: special tokens by name, and switches such as `enable_thinking`. Throws
 * `CHAT_TEMPLATE_INVALID` for a text that is no template.
 */
export function compileChatTemplate(text: string, file: string, variables: Readonly<Record<string, unknown>> = {}): ChatTemplate {
  let template: Template
  try {
    template = new Template(text.replaceAll(/\braise_exception\b/g, refuse))
  } catch (cause) {
    throw templateInvalid(file, `it cannot be parsed: ${(cause as Error).message}`, cause)
  }
  return {
    file,
    render(messages, { tools, generationPrompt = false } = {}) {
      let refusal: string | undefined
      try {
        return template.render({
          ...variables,
          messages: messages.map(toTemplateMessage),
          ...(tools !== undefined && tools.length > 0 ? { tools } : {}),
          add_generation_prompt: generationPrompt,
          [refuse]: (reason: unknown) => {
            refusal = String(reason)
            throw new Error(refusal)
          },
        })
      } catch (cause) {
        if (refusal === undefined) throw templateInvalid(file, `it failed: ${(cause as Error).message}`, cause)
        throw new TrilithonError('MESSAGES_INVALID', `${file} refuses the messages: ${refusal}`, {
          path: file,
          hint: 'Change the messages, or choose another renderer.',
          cause,
        })
      }
    },
  }
}

export function templateInvalid(file: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('CHAT_TEMPLATE_INVALID', `${file}: ${reason}`, {
    path: file,
    hint: 'Correct the template, or name the renderer of the model in the configuration.',
    cause,
  })
}
