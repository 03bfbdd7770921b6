import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createTemplateRenderer, loadTokenizer } from '@trilithon/renderers'
import type { TextTools } from './server-context.ts'

export interface TextToolsOptions {
  readonly modelFolder: string
  /** `model.chat_template` of the configuration: a text, or the path of a file; null takes that of the model. */
  readonly chatTemplate: string | null
  readonly workingDirectory: string
}

/** The tokeniser of a model folder, and its chat template; null where it has no tokeniser. Throws `TOKENIZER_INVALID` and `CHAT_TEMPLATE_INVALID`. */
export function loadTextTools({ modelFolder, chatTemplate, workingDirectory }: TextToolsOptions): TextTools | null {
  if (!existsSync(join(modelFolder, 'tokenizer.json'))) return null
  const tokenizer = loadTokenizer(modelFolder)
  if (chatTemplate === null && tokenizer.chatTemplate === undefined) return { tokenizer, renderer: null }
  return { tokenizer, renderer: createTemplateRenderer(tokenizer, { chatTemplate: readTemplate(chatTemplate, workingDirectory) }) }
}

function readTemplate(given: string | null, workingDirectory: string): { readonly text: string; readonly file: string } | undefined {
  if (given === null) return undefined
  const file = resolve(workingDirectory, given)
  // A template has line breaks or braces, which no sensible path has.
  const isPath = !/[\n{}]/.test(given) && existsSync(file)
  return isPath ? { text: readFileSync(file, 'utf8'), file } : { text: given, file: 'model.chat_template' }
}
