import { TrilithonError } from '@trilithon/core'

/** Where a new plugin goes: into the workspace of Trilithon itself, or into a folder of its own. */
export type PluginPlace = 'workspace' | 'alone'

/** Every spelling of a plugin's name that its files need. */
export interface PluginNames {
  /** npm name. */
  readonly packageName: string
  /** Name without the scope, kebab-case. */
  readonly baseName: string
  /** Value of `type` in the configuration: the npm name, and for a package of this project the name without the scope. */
  readonly type: string
  /** A key of the configuration, snake_case. */
  readonly key: string
}

const scope = '@trilithon'

/** Reads `my-router`, `@acme/my-router`. Throws `USAGE_INVALID`. */
export function pluginNames(name: string, place: PluginPlace): PluginNames {
  const fault = (message: string, hint: string) => new TrilithonError('USAGE_INVALID', message, { path: name, hint })
  const [, ownScope, baseName] = /^(?:(@[a-z0-9][a-z0-9._-]*)\/)?([a-z][a-z0-9]*(?:-[a-z0-9]+)*)$/.exec(name) ?? []
  if (baseName === undefined || name.length > 214)
    throw fault(`"${name}" is no name for a plugin`, 'Write it in kebab-case, with a scope or without: my-router, @acme/my-router.')
  if (place === 'alone') return { packageName: name, baseName, type: name, key: keyOf(baseName) }
  if (ownScope !== undefined && ownScope !== scope)
    throw fault(
      `packages of this workspace belong to ${scope}, not to ${ownScope}`,
      `Name it ${baseName}, or run the command outside of this workspace.`,
    )
  return { packageName: `${scope}/${baseName}`, baseName, type: baseName, key: keyOf(baseName) }
}

const keyOf = (baseName: string) => baseName.replaceAll('-', '_')

/** `my-router` → `MyRouter`. */
export const pascalCase = (name: string): string => name.replace(/(?:^|-)(.)/g, (_match, letter: string) => letter.toUpperCase())
