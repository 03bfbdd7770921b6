import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { environmentFileProblem } from '../configuration/environment-file.ts'
import { isEnvironmentPath } from '../configuration/environment-name.ts'
import { environmentInvalid } from './environment-invalid.ts'

/** The default export of a module by path, or of an installed package. Throws `ENVIRONMENT_INVALID`. */
export async function importEnvironment(id: string, bare: string, workingDirectory: string): Promise<unknown> {
  const file = isEnvironmentPath(id) ? fileOf(id, workingDirectory) : entryOf(id, bare, workingDirectory)
  try {
    const module: { default?: unknown } = await import(pathToFileURL(file).href)
    return module.default
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause)
    throw environmentInvalid(id, `it failed while it was imported: ${reason}`, 'Correct the module.', cause)
  }
}

function fileOf(id: string, workingDirectory: string): string {
  const file = resolve(workingDirectory, id)
  const problem = environmentFileProblem(id, workingDirectory)
  if (problem !== undefined) throw problem
  return statSync(file).isDirectory() ? packageEntry(id, file) : file
}

/** Looked for from the working directory, then from this package. */
function entryOf(id: string, bare: string, workingDirectory: string): string {
  const wanted = id === bare ? undefined : id.slice(bare.length + 1)
  const name = /^(@[a-z0-9._~-]+\/)?[a-z0-9._~-]+$/i.test(bare) ? bare : undefined
  for (const start of name === undefined ? [] : [workingDirectory, dirname(fileURLToPath(import.meta.url))]) {
    for (let folder = resolve(start); ; folder = dirname(folder)) {
      const candidate = join(folder, 'node_modules', bare)
      if (existsSync(join(candidate, 'package.json'))) return packageEntry(id, candidate, wanted)
      if (dirname(folder) === folder) break
    }
  }
  throw environmentInvalid(id, `there is no built-in environment and no package ${bare}`, `Run: pnpm add ${id}`)
}

interface Manifest {
  readonly version?: string
  readonly main?: string
  readonly exports?: unknown
}

function packageEntry(id: string, folder: string, wanted?: string): string {
  const path = join(folder, 'package.json')
  let manifest: Manifest
  try {
    manifest = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw environmentInvalid(id, `${path} cannot be read: ${(cause as Error).message}`, 'Install the package again.', cause)
  }
  if (wanted !== undefined && wanted !== 'latest' && manifest.version !== wanted)
    throw environmentInvalid(id, `version ${manifest.version} is installed`, `Run: pnpm add ${id}`)
  const entry = exportOf(manifest.exports) ?? manifest.main ?? 'index.js'
  const file = join(folder, entry)
  if (!existsSync(file)) throw environmentInvalid(id, `its entry ${entry} is missing in ${folder}`, 'Build or install the package again.')
  return file
}

/** The entrance `.` under the conditions that Node uses for `import`. */
function exportOf(exported: unknown): string | undefined {
  if (typeof exported === 'string') return exported
  if (typeof exported !== 'object' || exported === null) return undefined
  const table = exported as Record<string, unknown>
  for (const key of ['.', 'node', 'import', 'default']) {
    const found = key in table ? exportOf(table[key]) : undefined
    if (found !== undefined) return found
  }
  return undefined
}
