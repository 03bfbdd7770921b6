import type { AnyPlugin, Claim, Role, RunFacts, Source } from '@trilithon/core'
import type { ConfigPath, TableNode } from '../config/tree.ts'
import type { PluginCandidate } from '../plugins/candidate.ts'
import type { Mount } from './mount.ts'

/** A chosen plugin with its part of the configuration. */
export interface ComposedPlugin {
  readonly definition: AnyPlugin
  readonly candidate: Pick<PluginCandidate, 'name' | 'origin' | 'version'>
  readonly roles: readonly Role[]
  /** Parsed claims by their `at`. */
  readonly config: Readonly<Record<string, unknown>>
  readonly uses: readonly { readonly claim: Claim; readonly path: ConfigPath; readonly keys: readonly string[] }[]
}

/** A key whose value asks for something that this installation does not have. Stops a real start, not a dry run. */
export interface UnavailableKey {
  readonly path: string
  readonly value: unknown
  readonly source: Source
  /** npm name of the package that owns the key. */
  readonly owner: string
  /** Why, as a sentence without its full stop. */
  readonly reason: string
  readonly hint: string
  readonly code: 'PLUGIN_NOT_FOUND' | 'FEATURE_UNAVAILABLE' | 'MODEL_NOT_FOUND'
}

/** A key that the embedded backends do not read. */
export interface IgnoredKey {
  readonly path: string
  readonly value: unknown
  readonly source: Source
  readonly reason: string
}

/** A key that was written and has another value in the resolved configuration, because it follows from others. */
export interface OverruledKey {
  readonly path: string
  readonly value: unknown
  /** What holds instead. */
  readonly used: unknown
  readonly source: Source
  /** Why; undefined where the root does not say. */
  readonly reason: string | undefined
}

/** Written keys of a plugin, whether it is chosen, not in use, or not installed. */
export interface OwnedKeys {
  readonly owner: string
  readonly path: ConfigPath
  /** The keys in that table; undefined for the table and all below it. */
  readonly keys: readonly string[] | undefined
}

/** A package that the configuration asks for and that is not part of this installation. */
export interface AbsentPlugin {
  readonly name: string
  /** Whether it can be installed today. */
  readonly built: boolean
  /** Id of the seam that it fills; undefined for one that this version does not have. */
  readonly seam: string | undefined
  /** The keys that ask for it. */
  readonly keys: readonly string[]
}

/** Everything that is known before anything starts. */
export interface Composition {
  readonly root: string
  readonly mounts: readonly Mount[]
  readonly roles: readonly Role[]
  /** All keys as written, moved and shared, with their places; claimed keys included. */
  readonly tree: TableNode
  /** Resolved configuration by root name (`rl`, `trainer`, …), plugin keys at their places. */
  readonly resolved: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** In the order of creation. */
  readonly plugins: readonly ComposedPlugin[]
  readonly absent: readonly AbsentPlugin[]
  readonly owned: readonly OwnedKeys[]
  readonly unavailable: readonly UnavailableKey[]
  readonly ignored: readonly IgnoredKey[]
  readonly overruled: readonly OverruledKey[]
  /** Sentences for the user: moved keys, plugins listed and not used, combinations worth knowing of. */
  readonly notices: readonly string[]
  readonly files: readonly string[]
  readonly run: RunFacts
}
