import type { TrilithonError } from '@trilithon/core'
import type { TableNode } from '../config/tree.ts'
import { applyMoves } from './apply-moves.ts'
import { applyEnvironment } from './environment-defaults.ts'
import type { RootDefinition } from './root-definitions.ts'
import { shareKeys } from './share-keys.ts'

/**
 * The steps that rewrite a tree before anybody judges it, in prime-rl's order: shared keys go to the roots below, then each root's other
 * spellings to their places, then the environment fills what nobody wrote.
 */
export function prepareTree(
  tree: TableNode,
  definition: RootDefinition,
  environment: NodeJS.ProcessEnv,
): { tree: TableNode; notices: string[]; problems: TrilithonError[] } {
  const shared = shareKeys(tree, definition.sharedKeys)
  const problems = [...shared.problems]
  const notices: string[] = []
  let current = shared.tree
  for (const mount of definition.mounts) {
    const moved = applyMoves(current, mount.at, mount.root.moves ?? [])
    current = moved.tree
    notices.push(...moved.notices)
    problems.push(...moved.problems)
  }
  return { tree: applyEnvironment(current, definition.mounts, environment), notices, problems }
}
