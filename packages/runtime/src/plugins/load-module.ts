import { fileURLToPath, pathToFileURL } from 'node:url'
import { type AnyPlugin, TrilithonError } from '@trilithon/core'

/** Packages that a local file gets from the runtime: it need not install them, and a second copy would have its own native state. */
const shared = ['@trilithon/core', '@trilithon/native', '@trilithon/tensor', '@trilithon/testing', 'zod']

/**
 * Imports a plugin's module and returns its default export.
 *
 * The entry of a package is plain JavaScript and resolves what its package installed. A local file may be TypeScript, goes through jiti, and
 * shares the runtime's packages. Throws `PLUGIN_LOAD_FAILED` or `PLUGIN_INVALID`.
 */
export async function loadPluginModule(file: string, shownName: string, origin: 'installed' | 'local'): Promise<AnyPlugin> {
  let definition: unknown
  try {
    const module: { default?: unknown } = origin === 'installed' ? await import(pathToFileURL(file).href) : await importLocal(file)
    definition = module.default
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
    throw new TrilithonError('PLUGIN_LOAD_FAILED', `plugin ${shownName} failed while it was imported: ${reason}`, {
      path: shownName,
      hint: 'Run with --verbose to see where it failed.',
      cause: error,
    })
  }
  const fault = definitionFault(definition)
  if (fault !== undefined) {
    throw new TrilithonError('PLUGIN_INVALID', `${shownName} is not a plugin: ${fault}`, {
      path: shownName,
      hint: 'Write `export default definePlugin({ … })`.',
    })
  }
  return definition as AnyPlugin
}

async function importLocal(file: string): Promise<{ default?: unknown }> {
  const { createJiti } = await import('jiti')
  const alias: Record<string, string> = {}
  for (const name of shared) {
    const path = resolveOwn(name)
    if (path !== undefined) alias[name] = path
  }
  // Neither cache: a test or a long-lived process that loads a changed file must see the change.
  return createJiti(import.meta.url, { alias, interopDefault: false, fsCache: false, moduleCache: false }).import(file)
}

function resolveOwn(name: string): string | undefined {
  try {
    return fileURLToPath(import.meta.resolve(name))
  } catch (error) {
    // A package that this installation lacks cannot be shared; a plugin that imports it is told so by its own import.
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/** What a value lacks to be a plugin definition; undefined for a good one. */
export function definitionFault(definition: unknown): string | undefined {
  if (typeof definition !== 'object' || definition === null) return 'its default export is no plugin definition'
  const { name, fills, claims, create } = definition as Partial<AnyPlugin>
  if (typeof name !== 'string' || name === '') return 'it has no `name`'
  if (typeof fills !== 'object' || fills === null || typeof fills.key !== 'symbol') return '`fills` is not a seam'
  if (!Array.isArray(claims)) return '`claims` is not a list'
  if (typeof create !== 'function') return '`create` is not a function'
  return undefined
}
