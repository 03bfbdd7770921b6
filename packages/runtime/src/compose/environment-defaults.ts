import type { z } from 'zod'
import { objectKeys, shapeOf } from '../config/shape.ts'
import { type ConfigPath, nodeAt, type TableNode, withNode } from '../config/tree.ts'
import type { Mount } from './mount.ts'

/**
 * Keys whose metadata names a variable of the environment take its value where nothing else is written. Only plain tables are walked: no key
 * inside a list or a union reads the environment.
 */
export function applyEnvironment(tree: TableNode, mounts: readonly Mount[], environment: NodeJS.ProcessEnv): TableNode {
  let current = tree
  const visit = (schema: z.core.$ZodType, path: ConfigPath): void => {
    const { core, meta } = shapeOf(schema)
    const variable = meta.environment
    const text = typeof variable === 'string' ? environment[variable] : undefined
    if (typeof variable === 'string' && text !== undefined && text !== '' && nodeAt(current, path) === undefined) {
      current = withNode(current, path, { kind: 'text', words: [text], negated: false, source: { kind: 'environment', variable } })
    }
    for (const [key, below] of Object.entries(objectKeys(core) ?? {})) visit(below, [...path, key])
  }
  for (const mount of mounts) if (nodeAt(current, mount.at)?.kind === 'table') visit(mount.root.schema, mount.at)
  return current
}
