import type { Role } from '@trilithon/core'
import type { PluginCandidate } from '../plugins/candidate.ts'
import { seamsById } from '../plugins/discover.ts'
import type { Chosen } from './choose-plugins.ts'

/**
 * Adds what no key chooses: a plugin without claims that the `plugins` key lists, and the built-in filling without claims of each seam that is
 * still empty.
 */
export function defaultPlugins(
  chosen: readonly Chosen[],
  candidates: readonly PluginCandidate[],
  listed: ReadonlySet<PluginCandidate>,
  roles: readonly Role[],
): readonly Chosen[] {
  const result = [...chosen]
  const add = (candidate: PluginCandidate) => {
    if (!result.some((one) => one.candidate === candidate)) result.push({ candidate, uses: [] })
  }
  for (const candidate of listed) if (candidate.manifest.claims.length === 0) add(candidate)
  for (const candidate of candidates) {
    const seam = seamsById.get(candidate.manifest.seam)
    if (seam === undefined || candidate.origin !== 'built-in' || candidate.manifest.claims.length > 0) continue
    const filled = result.some((one) => one.candidate.manifest.seam === seam.id)
    if (!filled && candidate.manifest.runs_in.some((role) => roles.includes(role))) add(candidate)
  }
  return result
}
