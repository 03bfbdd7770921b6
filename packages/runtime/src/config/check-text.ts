import { TrilithonError } from '@trilithon/core'
import { type ConfigNode, type ConfigPath, joinPath } from './tree.ts'

// With the flag `u` a pair of surrogates is one character, so that this finds only halves.
const halfSurrogate = /[\ud800-\udfff]/u

/** Text that no resolved file could hold: half a surrogate pair (JSON can spell one), and `__proto__` as a key, which schemas of free tables skip. */
export function checkText(node: ConfigNode, path: ConfigPath = []): TrilithonError[] {
  const half = (text: string) =>
    halfSurrogate.test(text)
      ? [
          new TrilithonError('CONFIG_VALUE_INVALID', `\`${joinPath(path)}\` holds half of a surrogate pair, which is no text`, {
            path: joinPath(path),
            source: node.source,
            hint: 'Write the whole character.',
          }),
        ]
      : []
  switch (node.kind) {
    case 'table':
      return [...node.entries].flatMap(([key, value]) => {
        if (key !== '__proto__') return [...half(key), ...checkText(value, [...path, key])]
        const hint = 'Choose another name for it.'
        return [
          new TrilithonError('CONFIG_KEY_UNKNOWN', '`__proto__` cannot be a key', {
            path: joinPath(path, key),
            source: value.source,
            hint,
          }),
        ]
      })
    case 'list':
      return node.items.flatMap((item, index) => checkText(item, [...path, String(index)]))
    case 'text':
      return node.words.flatMap(half)
    case 'value':
      return typeof node.value === 'string' ? half(node.value) : []
  }
}
