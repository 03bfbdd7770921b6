import { type AnyPlugin, manifestOf, type PluginManifest } from '@trilithon/core'

/** A plugin that could be chosen: its manifest, and how to get its definition. Having one runs nothing of it (but for local files). */
export interface PluginCandidate {
  /** npm name, or the path of a local file as the configuration spells it. */
  readonly name: string
  readonly origin: 'built-in' | 'installed' | 'local'
  readonly version: string | undefined
  readonly manifest: PluginManifest
  load(): Promise<AnyPlugin>
}

export function builtInCandidate(plugin: AnyPlugin): PluginCandidate {
  return { name: plugin.name, origin: 'built-in', version: undefined, manifest: manifestOf(plugin, '.'), load: async () => plugin }
}
