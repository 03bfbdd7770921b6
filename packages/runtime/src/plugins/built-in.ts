import { builtinPlugins } from '@trilithon/builtin'
import type { AnyPlugin } from '@trilithon/core'
import { builtInCandidate, type PluginCandidate } from './candidate.ts'

/** The plain fillings that every installation has. A seam of one that no configuration fills gets the one among them without claims. */
export const builtInPlugins: readonly AnyPlugin[] = builtinPlugins

export const builtInCandidates: readonly PluginCandidate[] = builtInPlugins.map(builtInCandidate)
