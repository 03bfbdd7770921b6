import type { KnownPluginSource } from './known-plugin.ts'
import { launchPlugins } from './launch-plugins.ts'
import { modelPlugins } from './model-plugins.ts'
import { servingPlugins } from './serving-plugins.ts'

/**
 * Keys of prime-rl's surface that belong to packages of their own, with the schema that the package is going to have. `known-plugins.json` is
 * written from this list; a package that is built leaves it.
 */
export const knownPluginSources: readonly KnownPluginSource[] = [...modelPlugins, ...servingPlugins, ...launchPlugins]
