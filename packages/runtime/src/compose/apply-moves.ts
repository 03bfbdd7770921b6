import { type ConfigurationMove, formatSource, TrilithonError } from '@trilithon/core'
import { type ConfigPath, joinPath, matchingPaths, mergeNodes, nodeAt, splitPath, type TableNode, withNode } from '../config/tree.ts'

/**
 * Takes keys from their old or second spelling to where the schema knows them. `at` is where the root of the moves lies.
 *
 * Both spellings with different content are `CONFIG_VALUE_CONFLICT`, unless the move says which counts.
 */
export function applyMoves(
  tree: TableNode,
  at: ConfigPath,
  moves: readonly ConfigurationMove[],
): { tree: TableNode; notices: string[]; problems: TrilithonError[] } {
  const notices: string[] = []
  const problems: TrilithonError[] = []
  let current = tree
  for (const move of moves) {
    for (const from of matchingPaths(current, [...at, ...splitPath(move.from)])) {
      const to = fillStars([...at, ...splitPath(move.to)], from)
      const value = nodeAt(current, from)
      const present = nodeAt(current, to)
      if (value === undefined) continue
      const bothTables = value.kind === 'table' && present?.kind === 'table'
      if (present !== undefined && !bothTables && move.keep === undefined) {
        problems.push(
          new TrilithonError(
            'CONFIG_VALUE_CONFLICT',
            `\`${joinPath(from)}\` and \`${joinPath(to)}\` are two spellings of one key, and both are given`,
            {
              path: joinPath(to),
              source: value.source,
              hint: `Keep \`${joinPath(to)}\` (${formatSource(present.source)}).`,
            },
          ),
        )
        // The second spelling is reported; no schema need report it again.
        current = withNode(current, from, undefined)
        continue
      }
      const merged = present === undefined ? value : move.keep === 'to' ? mergeNodes(value, present) : mergeNodes(present, value)
      current = withNode(withNode(current, from, undefined), to, merged)
      if (move.notice !== undefined && !notices.includes(move.notice)) notices.push(move.notice)
    }
  }
  return { tree: current, notices, problems }
}

/** The stars of the target are the parts that the stars of the source matched, in order. */
function fillStars(to: ConfigPath, from: ConfigPath): ConfigPath {
  const indices = from.filter((part) => /^\d+$/.test(part))
  return to.map((part) => (part === '*' ? (indices.shift() ?? part) : part))
}
