import { joinPath, leafPaths, nodeAt, sourceAt, splitPath, startsWith, type TableNode, valueAt } from '../config/tree.ts'
import type { OverruledKey } from './composition.ts'
import type { Mount } from './mount.ts'

/** What a root says of a key: why it was changed, or that it has no effect. */
export interface Reason {
  readonly message: string
  readonly unused: boolean
}

type Resolved = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/**
 * Written keys that do not have their written value in the resolved configuration: nobody's key is changed in silence. What asks to be filled in
 * ("auto", null) is no such key. `explained` has the reasons that roots give, by tree path.
 */
export function listOverruled(
  written: TableNode,
  mounts: readonly Mount[],
  before: Resolved,
  after: Resolved,
  explained: ReadonlyMap<string, Reason>,
): OverruledKey[] {
  const innermostFirst = [...mounts].sort((a, b) => b.at.length - a.at.length)
  const told = new Set<string>()
  const changed = leafPaths(written).flatMap((path): OverruledKey[] => {
    const mount = innermostFirst.find(({ at }) => startsWith(path, at))
    if (mount === undefined) return []
    const below = path.slice(mount.at.length)
    const value = valueAt(before[mount.root.name], below)
    const used = valueAt(after[mount.root.name], below) ?? null
    if (value === undefined || value === null || value === 'auto' || JSON.stringify(value) === JSON.stringify(used)) return []
    // An empty table says no more than that it is there.
    if (nodeAt(written, path)?.kind === 'table' && used !== null) return []
    const shown = joinPath(path)
    told.add(shown)
    return [{ path: shown, value, used, source: sourceAt(written, path), reason: explained.get(shown)?.message }]
  })
  const unused = [...explained].flatMap(([path, { message, unused }]): OverruledKey[] => {
    const place = splitPath(path)
    const mount = innermostFirst.find(({ at }) => startsWith(place, at))
    if (!unused || told.has(path) || mount === undefined) return []
    const used = valueAt(after[mount.root.name], place.slice(mount.at.length)) ?? null
    return [{ path, value: used, used, source: sourceAt(written, place), reason: message }]
  })
  return [...changed, ...unused]
}
