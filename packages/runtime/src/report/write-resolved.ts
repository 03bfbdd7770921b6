import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { launchingParent } from '@trilithon/monitor'
import { stringify } from 'smol-toml'
import type { z } from 'zod'
import type { Composition } from '../compose/composition.ts'
import { lookupSchemas } from '../compose/lookup-schemas.ts'
import { shapeOf } from '../config/shape.ts'
import type { ConfigPath } from '../config/tree.ts'
import { knownPlugins } from '../plugins/known-plugins.ts'

/** Keys of one call of the command line that a file must not repeat: reading it back would be a dry run again. */
const perCall = ['dry_run']

/**
 * The resolved configuration of one root as TOML that reads back to the same configuration.
 *
 * TOML has no null: "None" is written where null differs from the default, and nothing where it does not. The text "None" cannot be written; nobody
 * can give it either, and where a plugin makes it up this throws `CONFIG_VALUE_INVALID`.
 */
export function resolvedToml(composition: Composition, rootName: string): string {
  const mount = composition.mounts.find(({ root }) => root.name === rootName)
  const config = composition.resolved[rootName]
  if (mount === undefined || config === undefined) throw new TrilithonError('INVARIANT_BROKEN', `the composition has no root ${rootName}`)
  const lookup = lookupSchemas(
    composition.mounts,
    composition.plugins.map(({ definition }) => definition),
    knownPlugins(),
  )
  const kept = Object.fromEntries(Object.entries(config).filter(([key]) => !perCall.includes(key)))
  return stringify(withoutNulls(kept, mount.at, lookup) as Record<string, unknown>)
}

function withoutNulls(value: unknown, path: ConfigPath, lookup: (path: ConfigPath) => readonly z.core.$ZodType[]): unknown {
  if (value === null) return 'None'
  if (value === 'None') {
    throw new TrilithonError('CONFIG_VALUE_INVALID', `\`${path.join('.')}\` is the text "None", which a file reads as null`, {
      path: path.join('.'),
      hint: 'Choose another value; no file of users can hold this one, so a default or a plugin made it.',
    })
  }
  if (Array.isArray(value)) return value.map((item, index) => withoutNulls(item, [...path, String(index)], lookup))
  if (typeof value !== 'object') return value
  const entries = Object.entries(value).flatMap(([key, item]): [string, unknown][] => {
    const place = [...path, key]
    return item === null && nullIsDefault(lookup(place)) ? [] : [[key, withoutNulls(item, place, lookup)]]
  })
  return Object.fromEntries(entries)
}

/** Leaving a key out means null where null is its default, and for a slot that is empty by default; below a key that allows anything it does not. */
function nullIsDefault(schemas: readonly z.core.$ZodType[]): boolean {
  return (
    schemas.length > 0 &&
    schemas.every((schema) => {
      const { hasDefault, defaultValue, core } = shapeOf(schema)
      return hasDefault ? defaultValue === null : core._zod.def.type === 'object'
    })
  )
}

/**
 * Writes `<output_dir>/configs/<root>.toml` for every root that a process reads, each aside and then renamed. Resolves to the paths, relative
 * to the working directory. A role that a launcher has started writes none: it reads what the launcher has written. Throws `OUTPUT_UNUSABLE`.
 */
export function writeResolved(composition: Composition): string[] {
  if (launchingParent() !== null) return []
  const { workingDirectory } = composition.run
  const folder = resolve(workingDirectory, outputFolder(composition), 'configs')
  try {
    mkdirSync(folder, { recursive: true })
    return composition.mounts.flatMap(({ root, role }) => {
      if (role === undefined) return []
      const file = join(folder, `${root.name}.toml`)
      writeFileSync(`${file}.tmp`, resolvedToml(composition, root.name))
      renameSync(`${file}.tmp`, file)
      return [relative(workingDirectory, file)]
    })
  } catch (error) {
    if (TrilithonError.is(error)) throw error
    throw new TrilithonError('OUTPUT_UNUSABLE', `the resolved configuration cannot be written to ${folder}: ${(error as Error).message}`, {
      path: 'output_dir',
      hint: 'Choose another folder with --output-dir.',
      cause: error,
    })
  }
}

/** The run's folder: that of the launcher, else of the one root. */
export function outputFolder(composition: Composition): string {
  const own = composition.resolved[composition.root]?.output_dir
  return typeof own === 'string' ? own : 'outputs'
}
