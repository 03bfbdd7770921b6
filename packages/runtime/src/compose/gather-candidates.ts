import { TrilithonError } from '@trilithon/core'
import { nodeAt, type TableNode, textOf } from '../config/tree.ts'
import { builtInCandidates } from '../plugins/built-in.ts'
import type { PluginCandidate } from '../plugins/candidate.ts'
import { discoverInstalled, findPackage, readInstalledPlugin, readLocalPlugin, seamsById } from '../plugins/discover.ts'

export interface Candidates {
  readonly all: readonly PluginCandidate[]
  /** Those that the `plugins` key names. */
  readonly listed: ReadonlySet<PluginCandidate>
  readonly problems: readonly TrilithonError[]
}

/** Built-in plugins, installed ones by their manifests, and those that the `plugins` key names. Only local files are run. */
export async function gatherCandidates(tree: TableNode, workingDirectory: string): Promise<Candidates> {
  const { candidates: installed, problems } = discoverInstalled(workingDirectory)
  const all = [...builtInCandidates, ...installed]
  const listed = new Set<PluginCandidate>()
  const faults = [...problems]
  const list = nodeAt(tree, ['plugins'])
  const items = list?.kind === 'list' ? list.items : list?.kind === 'text' ? list.words.map((word) => ({ ...list, words: [word] })) : []
  for (const item of items) {
    // Whatever is no text is the schema's to report.
    const name = textOf(item)
    if (name === undefined) continue
    try {
      const candidate = await readListed(name, workingDirectory, all)
      listed.add(candidate)
      if (!all.includes(candidate)) all.push(candidate)
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      const { code, message, hint, cause } = error
      faults.push(new TrilithonError(code, message, { path: 'plugins', source: item.source, hint, cause }))
    }
  }
  for (const candidate of all) {
    if (seamsById.has(candidate.manifest.seam)) continue
    faults.push(
      new TrilithonError('PLUGIN_INVALID', `${candidate.name} fills "${candidate.manifest.seam}", which is no seam of this version`, {
        path: candidate.name,
        hint: `Seams: ${[...seamsById.keys()].join(', ')}.`,
      }),
    )
  }
  const fits = (candidate: PluginCandidate) => seamsById.has(candidate.manifest.seam)
  return { all: all.filter(fits), listed: new Set([...listed].filter(fits)), problems: faults }
}

async function readListed(name: string, workingDirectory: string, all: readonly PluginCandidate[]): Promise<PluginCandidate> {
  if (/^(\.{1,2}\/|\/)/.test(name)) return readLocalPlugin(name, workingDirectory)
  const found = all.find((candidate) => candidate.name === name) ?? findByName(name, workingDirectory)
  if (found !== undefined) return found
  throw new TrilithonError('PLUGIN_NOT_FOUND', `no plugin package "${name}" is installed`, {
    hint: `Run: pnpm add ${name}. A local file starts with ./`,
  })
}

/** An installed package by its full name, or by the part after `@trilithon/`. */
export function findByName(type: string, workingDirectory: string): PluginCandidate | undefined {
  for (const name of type.includes('/') ? [type] : [`@trilithon/${type}`, type]) {
    const folder = findPackage(name, workingDirectory)
    const candidate = folder === undefined ? undefined : readInstalledPlugin(folder)
    if (candidate !== undefined) return candidate
  }
  return undefined
}
