import { basename } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { createGlmRenderer } from './families/glm-renderer.ts'
import { createQwen3Renderer } from './families/qwen3-renderer.ts'
import type { ThinkingOptions } from './families/thinking-options.ts'
import type { Renderer } from './renderer.ts'
import { createTemplateRenderer } from './template/template-renderer.ts'
import type { Tokenizer } from './tokenizer/tokenizer.ts'

/** The table `renderer` of the configuration, parsed. */
export interface RendererTable extends ThinkingOptions {
  readonly name: string
  readonly [key: string]: unknown
}

export interface CreateRendererOptions {
  readonly tokenizer: Tokenizer
  /** Folder or name of the model, by which `auto` chooses. */
  readonly model: string
  /** `tokenizer.chat_template` of the configuration, read: only the chat template's renderer uses it. */
  readonly chatTemplate?: { readonly text: string; readonly file: string } | undefined
}

const families: Readonly<Record<string, (tokenizer: Tokenizer, table: ThinkingOptions) => Renderer>> = {
  qwen3: createQwen3Renderer,
  'glm-5': (tokenizer, table) => createGlmRenderer('glm-5', tokenizer, table),
  'glm-5.1': (tokenizer, table) => createGlmRenderer('glm-5.1', tokenizer, table),
}

/** Names of models that `auto` knows, the more particular first. */
const automatic: readonly (readonly [pattern: RegExp, renderer: string])[] = [
  [/^glm-5\.1\b/i, 'glm-5.1'],
  [/^glm-5(?![.\d])/i, 'glm-5'],
  // Those of 2507 and Coder have templates of their own.
  [/^qwen3-(?!vl|coder)(?!.*2507)/i, 'qwen3'],
]

/** Keys of the table that belong to every renderer and say nothing to a chat template. */
const ownKeys = new Set(['name', 'tool_parser', 'reasoning_parser', 'preserve_all_thinking', 'preserve_thinking_between_tool_calls'])

/** The renderer that the configuration names; null is the model's chat template. Throws `FEATURE_UNAVAILABLE` for one that is not built. */
export function createRenderer(table: RendererTable | null, { tokenizer, model, chatTemplate }: CreateRendererOptions): Renderer {
  if (table === null) return createTemplateRenderer(tokenizer, { chatTemplate })
  if (table.name === 'default') {
    if (table.preserve_all_thinking || table.preserve_thinking_between_tool_calls)
      throw new TrilithonError('FEATURE_UNAVAILABLE', 'a chat template decides itself which thinking it keeps', {
        path: 'renderer.name',
        hint: 'Name the renderer of the model, or pass the switch that the template has for it.',
      })
    const variables = Object.fromEntries(Object.entries(table).filter(([key]) => !ownKeys.has(key)))
    return createTemplateRenderer(tokenizer, { chatTemplate, variables })
  }
  const name = table.name === 'auto' ? resolveName(model) : table.name
  const create = families[name]
  if (create !== undefined) return create(tokenizer, table)
  throw new TrilithonError('FEATURE_UNAVAILABLE', `The renderer ${name} is not built yet.`, {
    path: 'renderer.name',
    hint: `Use "default" for the chat template, or one of ${Object.keys(families).join(', ')}.`,
  })
}

function resolveName(model: string): string {
  const name = automatic.find(([pattern]) => pattern.test(basename(model)))?.[1]
  if (name !== undefined) return name
  throw new TrilithonError('CONFIG_VALUE_INVALID', `No renderer is known for the model ${model}.`, {
    path: 'renderer.name',
    hint: `Name one: ${Object.keys(families).join(', ')}, or "default" for the chat template.`,
  })
}
