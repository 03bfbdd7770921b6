import { readFileSync, statSync } from 'node:fs'
import { dirname, extname, isAbsolute, relative, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { parseToml } from './parse-toml.ts'
import { parseYaml } from './parse-yaml.ts'
import { type ConfigNode, type TableNode, textOf } from './tree.ts'

/** The key by which a file names the files it stands on: `"@" = "base.toml"`, or a list of them, relative to itself. */
const includeKey = '@'

/**
 * Reads a `.toml`, `.yaml`, `.yml` or `.json` file with the place of every value: first the files it stands on, lowest first, then itself.
 *
 * `path` is relative to `workingDirectory`, and so are the file names in messages.
 * Throws `CONFIG_FILE_UNREADABLE`, `CONFIG_SYNTAX_INVALID`, `CONFIG_KEY_DUPLICATE` or `CONFIG_CYCLE`.
 */
export function loadFile(path: string, workingDirectory: string): readonly TableNode[] {
  return load(resolve(workingDirectory, path), workingDirectory, [])
}

function load(file: string, workingDirectory: string, chain: readonly string[]): readonly TableNode[] {
  const shown = showPath(file, workingDirectory)
  if (chain.includes(file)) {
    const round = [...chain.slice(chain.indexOf(file)), file].map((one) => showPath(one, workingDirectory))
    throw new TrilithonError('CONFIG_CYCLE', `${round[0]} includes itself: ${round.join(' -> ')}`, {
      path: shown,
      hint: `Remove one "${includeKey}" entry of this circle.`,
    })
  }
  const table = parse(readText(file, shown), file, shown)
  const include = table.entries.get(includeKey)
  if (include === undefined) return [table]

  const own: TableNode = { ...table, entries: new Map([...table.entries].filter(([key]) => key !== includeKey)) }
  const below = (include.kind === 'list' ? include.items : [include]).flatMap((item) => {
    const name = textOf(item)
    if (name === undefined) {
      throw new TrilithonError('CONFIG_VALUE_INVALID', `"${includeKey}" takes a file name or a list of file names`, {
        path: includeKey,
        source: item.source,
        hint: `Write "${includeKey}" = "base.toml".`,
      })
    }
    const target = resolve(dirname(file), name)
    return withIncludeSource(() => load(target, workingDirectory, [...chain, file]), item)
  })
  return [...below, own]
}

/** An included file that cannot be read is reported where it is named. */
function withIncludeSource(read: () => readonly TableNode[], item: ConfigNode): readonly TableNode[] {
  try {
    return read()
  } catch (error) {
    if (!TrilithonError.is(error) || error.source !== undefined) throw error
    const { code, message, path, hint, cause } = error
    throw new TrilithonError(code, message, { path, hint, cause, source: item.source })
  }
}

function showPath(file: string, workingDirectory: string): string {
  const short = relative(workingDirectory, file)
  return short.startsWith('..') || isAbsolute(short) || short === '' ? file : short
}

function readText(file: string, shown: string): string {
  const fail = (message: string, hint: string, cause?: unknown) =>
    new TrilithonError('CONFIG_FILE_UNREADABLE', message, { path: shown, hint, cause })
  let bytes: Buffer
  try {
    if (statSync(file).isDirectory()) throw fail(`${shown} is a directory`, 'Name a .toml file in it.')
    bytes = readFileSync(file)
  } catch (error) {
    if (TrilithonError.is(error)) throw error
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    const reasons: Record<string, string> = {
      ENOENT: 'there is no such file',
      EACCES: 'permission denied',
      ENOTDIR: 'a part of the path is a file',
    }
    throw fail(`${shown} cannot be read: ${reasons[code] ?? code}`, 'Check the path; relative ones start at the working directory.', error)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw fail(`${shown} is not UTF-8 text`, 'Save it as UTF-8.', error)
  }
}

function parse(text: string, file: string, shown: string): TableNode {
  switch (extname(file).toLowerCase()) {
    case '.toml':
      return parseToml(text, shown)
    // JSON is a subset of YAML, and one parser with positions is enough.
    case '.yaml':
    case '.yml':
    case '.json':
      return parseYaml(text, shown)
    default:
      throw new TrilithonError('CONFIG_FILE_UNREADABLE', `${shown} is neither .toml, .yaml, .yml nor .json`, {
        path: shown,
        hint: 'Rename the file by its format.',
      })
  }
}
