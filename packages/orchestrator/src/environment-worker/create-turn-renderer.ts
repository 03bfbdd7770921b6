import { basename } from 'node:path'
import type { ChatMessage, RendererDescription, TurnRenderer } from '@trilithon/environments'
import { createRenderer, loadTokenizer, type Message, type Rendering } from '@trilithon/renderers'

/** A renderer of turns from a tokeniser's folder. Throws what `loadTokenizer` and `createRenderer` throw. */
export function createTurnRenderer({ config, tokenizer: folder, model, chatTemplate }: RendererDescription): TurnRenderer {
  const tokenizer = loadTokenizer(folder)
  const table = config === null ? null : { name: 'default', ...config }
  const renderer = createRenderer(table, { tokenizer, model: basename(model), chatTemplate: chatTemplate ?? undefined })
  return {
    stopIds: renderer.stopIds,
    render: (messages) => renderer.render(messages.map(toMessage), { generationPrompt: true }),
    extend(previous, completionIds, next) {
      // A rendering comes back as it was given out.
      const { rendering, broken } = renderer.extend(previous as Rendering, completionIds, next.map(toMessage))
      return broken === undefined ? { prompt: rendering } : { broken }
    },
    decode: (ids) => tokenizer.decode(ids),
  }
}

function toMessage({ role, content, toolCallId, name }: ChatMessage): Message {
  return { role, content, ...(toolCallId === undefined ? {} : { toolCallId }), ...(name === undefined ? {} : { name }) }
}
