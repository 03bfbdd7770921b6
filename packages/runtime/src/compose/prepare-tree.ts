import type { TrilithonError } from '@trilithon/core'
import type { TableNode } from '../config/tree.ts'
import { applyMoves } from './apply-moves.ts'
import { applyEnvironment } from './environment-defaults.ts'
import type { RootDefinition } from './root-definitions.ts'
import { type Origins, shareKeys } from './share-keys.ts'

/**
 * The steps that rewrite a tree before anybody judges it: every root's other spellings go to their places, then the shared keys to the roots
 * below, then the environment fills what nobody wrote.
 */
export function prepareTree(
  tree: TableNode,
  definition: RootDefinition,
  environment: NodeJS.ProcessEnv,
): { tree: TableNode; origins: Origins; notices: string[]; problems: TrilithonError[] } {
  const problems: TrilithonError[] = []
  const notices: string[] = []
  let current = tree
  for (const mount of definition.mounts) {
    const moved = applyMoves(current, mount.at, mount.root.moves ?? [])
    current = moved.tree
    notices.push(...moved.notices)
    problems.push(...moved.problems)
  }
  const shared = shareKeys(current, definition.sharedKeys)
  problems.push(...shared.problems)
  return { tree: applyEnvironment(shared.tree, definition.mounts, environment), origins: shared.origins, notices, problems }
}
