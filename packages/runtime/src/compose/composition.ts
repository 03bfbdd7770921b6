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
  /** One sentence why. */
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
  readonly unavailable: readonly UnavailableKey[]
  readonly ignored: readonly IgnoredKey[]
  /** Sentences for the user: moved keys, plugins listed and not used. */
  readonly notices: readonly string[]
  readonly files: readonly string[]
  readonly run: RunFacts
}
