import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { coreSeams, manifestOf, PluginManifest, TrilithonError } from '@trilithon/core'
import type { PluginCandidate } from './candidate.ts'
import { loadPluginModule } from './load-module.ts'

const runtimeFolder = dirname(fileURLToPath(import.meta.url))

/** Folders that plugins are looked for from: the working directory first, then the runtime's own installation. */
function searchRoots(workingDirectory: string): string[] {
  return [workingDirectory, runtimeFolder]
}

function* ancestors(folder: string): Iterable<string> {
  for (let current = resolve(folder); ; current = dirname(current)) {
    yield current
    if (dirname(current) === current) return
  }
}

/** Folder of an installed package, or undefined. */
export function findPackage(name: string, workingDirectory: string): string | undefined {
  if (!/^(@[a-z0-9._~-]+\/)?[a-z0-9._~-]+$/i.test(name)) return undefined
  for (const root of searchRoots(workingDirectory)) {
    for (const folder of ancestors(root)) {
      const candidate = join(folder, 'node_modules', name)
      if (existsSync(join(candidate, 'package.json'))) return candidate
    }
  }
  return undefined
}

/** The plugin in a package's folder, by its manifest alone; undefined where the package is none. Throws `PLUGIN_INVALID`. */
export function readInstalledPlugin(folder: string): PluginCandidate | undefined {
  const path = join(folder, 'package.json')
  let manifestOfPackage: { name?: unknown; version?: unknown; trilithon?: unknown }
  try {
    manifestOfPackage = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new TrilithonError('PLUGIN_INVALID', `${path} is not JSON: ${(error as Error).message}`, {
      path,
      hint: 'Install the package again.',
      cause: error,
    })
  }
  if (manifestOfPackage.trilithon === undefined) return undefined
  const name = String(manifestOfPackage.name)
  const parsed = PluginManifest.safeParse(manifestOfPackage.trilithon)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new TrilithonError(
      'PLUGIN_INVALID',
      `the \`trilithon\` field of ${name} is wrong at \`${issue?.path.join('.')}\`: ${issue?.message}`,
      {
        path,
        hint: 'Run describePlugin of @trilithon/testing in the package.',
      },
    )
  }
  const manifest = parsed.data
  const load = async () => {
    const definition = await loadPluginModule(resolve(folder, manifest.entry), name, 'installed')
    const actual = manifestOf(definition, manifest.entry)
    if (JSON.stringify(sorted(actual)) !== JSON.stringify(sorted(manifest))) {
      throw new TrilithonError('PLUGIN_INVALID', `the \`trilithon\` field of ${name} differs from its definition`, {
        path,
        hint: `Write into package.json: "trilithon": ${JSON.stringify(actual)}`,
      })
    }
    return definition
  }
  return { name, origin: 'installed', version: String(manifestOfPackage.version), manifest, load }
}

/** Key order carries no meaning in a manifest. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  )
}

/** The plugin of a local file. The configuration names it, so it may run. */
export async function readLocalPlugin(path: string, workingDirectory: string): Promise<PluginCandidate> {
  const file = resolve(workingDirectory, path)
  if (!existsSync(file)) {
    throw new TrilithonError('PLUGIN_NOT_FOUND', `there is no plugin file ${path}`, {
      path,
      hint: 'Local plugins are relative to the working directory; an npm package is named without ./',
    })
  }
  const definition = await loadPluginModule(file, path, 'local')
  return { name: path, origin: 'local', version: undefined, manifest: manifestOf(definition, path), load: async () => definition }
}

/**
 * Plugins that an installation offers: the direct dependencies of the working directory's package and everything under `@trilithon` that can be
 * resolved. Nothing of them runs.
 */
export function discoverInstalled(workingDirectory: string): { candidates: PluginCandidate[]; problems: TrilithonError[] } {
  const folders = new Map<string, string>()
  for (const root of searchRoots(workingDirectory)) {
    for (const folder of ancestors(root)) {
      const scope = join(folder, 'node_modules', '@trilithon')
      if (!existsSync(scope)) continue
      for (const entry of readdirSync(scope)) {
        const name = `@trilithon/${entry}`
        if (!folders.has(name) && existsSync(join(scope, entry, 'package.json'))) folders.set(name, join(scope, entry))
      }
    }
  }
  for (const name of directDependencies(workingDirectory)) {
    const folder = folders.has(name) ? undefined : findPackage(name, workingDirectory)
    if (folder !== undefined) folders.set(name, folder)
  }
  const candidates: PluginCandidate[] = []
  const problems: TrilithonError[] = []
  for (const folder of folders.values()) {
    try {
      const candidate = readInstalledPlugin(folder)
      if (candidate !== undefined) candidates.push(candidate)
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      problems.push(error)
    }
  }
  return { candidates: candidates.sort((a, b) => (a.name < b.name ? -1 : 1)), problems }
}

function directDependencies(workingDirectory: string): string[] {
  for (const folder of ancestors(workingDirectory)) {
    const path = join(folder, 'package.json')
    if (!existsSync(path)) continue
    try {
      const { dependencies, devDependencies, optionalDependencies } = JSON.parse(readFileSync(path, 'utf8'))
      return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
    } catch (error) {
      throw new TrilithonError('PLUGIN_INVALID', `${path} is not JSON: ${(error as Error).message}`, {
        path,
        hint: 'Correct the file.',
        cause: error,
      })
    }
  }
  return []
}

/** Seam ids that a manifest may name, with the roles and threads of each. */
export const seamsById = new Map(coreSeams.map((seam) => [seam.id, seam]))
