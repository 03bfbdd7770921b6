import { basename, extname } from 'node:path'

/** What is said of an environment to name it. */
export interface NamedEnvironment {
  readonly id: string
  readonly name?: string | null | undefined
}

/** Whether an id is the path of a module or of a folder, and not the name of a package. */
export function isEnvironmentPath(id: string): boolean {
  return /^\.{0,2}\//.test(id) || /\.[cm]?[jt]s$/.test(id)
}

/** `name@version` without its version; a scope keeps its `@`, a path all of it. */
export function withoutVersion(id: string): string {
  const at = id.indexOf('@', 1)
  return at === -1 || isEnvironmentPath(id) ? id : id.slice(0, at)
}

/** Name of an environment in metrics and logs: the given one, of a path the name of the file without its extension, else the id without its version. */
export function environmentName({ id, name }: NamedEnvironment): string {
  if (name != null) return name
  return isEnvironmentPath(id) ? basename(id, extname(id)) : withoutVersion(id)
}

/** The name as part of a file's: `org/env` of a hub has a slash. */
export function environmentFileName(name: string): string {
  return name.replaceAll('/', '--')
}

/** File systems end at 255 bytes, and some of them are for what is written around a name. */
const longestName = 200

/** Why nothing can be named so; undefined for a good name. A slash is taken from an id only. */
export function unsafeEnvironmentName({ id, name }: NamedEnvironment): string | undefined {
  const shown = environmentName({ id, name })
  if (name?.includes('/')) return 'has a slash'
  if (environmentFileName(shown).startsWith('.')) return 'begins with a dot'
  if (/[\p{Cc}\\]/u.test(shown)) return 'has a control character or a backslash'
  if (Buffer.byteLength(shown) > longestName) return `is longer than ${longestName} bytes`
  return shown.trim() === '' ? 'is empty' : undefined
}
