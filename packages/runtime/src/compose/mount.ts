import type { ConfigurationRoot, Role } from '@trilithon/core'
import { type ConfigPath, splitPath } from '../config/tree.ts'

/** Where the configuration of a root lies in the tree that is composed: `orchestrator` lies at `orchestrator` under `rl`, and is the whole tree alone. */
export interface Mount {
  readonly root: ConfigurationRoot
  readonly at: ConfigPath
  /** The process that reads it; undefined for the launcher's own keys. */
  readonly role: Role | undefined
  /** npm name of the package that owns the root's keys. */
  readonly owner: string
}

/** The tree path of a claim's `at` (`orchestrator.router`), or undefined where its root is not part of the composition. */
export function placeOf(mounts: readonly Mount[], at: string): { readonly mount: Mount; readonly path: ConfigPath } | undefined {
  const [root, ...below] = splitPath(at)
  const mount = mounts.find((one) => one.root.name === root)
  return mount === undefined ? undefined : { mount, path: [...mount.at, ...below] }
}
