import type { Message } from '../messages.ts'

/**
 * Thinking and answer of a message. Templates look for thinking in a field of its own first, then in front of `</think>` in the text. `trimmed` is
 * what they cut around the two parts of such a text.
 */
export function splitThinking(
  { reasoning, content }: Message,
  trimmed: '\n' | 'nothing',
): { readonly reasoning: string; readonly content: string } {
  if (reasoning !== undefined || !content.includes('</think>')) return { reasoning: reasoning ?? '', content }
  const before = content.slice(0, content.indexOf('</think>'))
  const after = content.slice(content.lastIndexOf('</think>') + '</think>'.length)
  if (trimmed === 'nothing') return { reasoning: before.slice(startOfThinking(before)), content: after }
  const ended = before.replace(/\n+$/, '')
  return { reasoning: ended.slice(startOfThinking(ended)).replace(/^\n+/, ''), content: after.replace(/^\n+/, '') }
}

function startOfThinking(text: string): number {
  const at = text.lastIndexOf('<think>')
  return at === -1 ? 0 : at + '<think>'.length
}
