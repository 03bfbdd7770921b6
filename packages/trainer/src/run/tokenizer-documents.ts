import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Files of a model folder that belong to the tokeniser. */
const tokenizerFiles = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'generation_config.json',
  'special_tokens_map.json',
]

/** What `tokenizer.chat_template` stands for: the text, and the file that it was read from, or the key. null takes that of the tokeniser. */
export function chatTemplateOf(
  given: string | null,
  workingDirectory: string,
): { readonly text: string; readonly file: string } | undefined {
  if (given === null) return undefined
  const file = resolve(workingDirectory, given)
  // A template has line breaks and braces, which no sensible path has.
  return !/[\n{}]/.test(given) && existsSync(file)
    ? { text: readFileSync(file, 'utf8'), file }
    : { text: given, file: 'tokenizer.chat_template' }
}

/** The texts of a tokeniser by file name, to be written beside weights; a chat template of the configuration takes the place of its own. */
export function tokenizerDocuments(folder: string | null, chatTemplate?: { readonly text: string }): Record<string, string> {
  const found = folder === null ? [] : tokenizerFiles.filter((name) => existsSync(join(folder, name)))
  return {
    ...Object.fromEntries(found.map((name) => [name, readFileSync(join(folder ?? '', name), 'utf8')])),
    ...(chatTemplate === undefined ? {} : { 'chat_template.jinja': chatTemplate.text }),
  }
}
