import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type AnyPlugin,
  type Capabilities,
  type Claim,
  type Disposable,
  PluginManifest,
  type RunFacts,
  silentLogger,
  TrilithonError,
} from '@trilithon/core'
import { z } from 'zod'
import type { SuiteContext } from './suite.ts'

export interface DescribePluginOptions {
  /** Folder of the plugin's `package.json`, as a path or a URL: `new URL('..', import.meta.url)`. */
  readonly packageRoot: string | URL
  /**
   * Example configuration: for each claim the table at its path, as a file would give it, without `type`. `check` must find nothing wrong with
   * it, and `create` must work. A claim that is left out is tried with an empty table.
   */
  readonly config?: Readonly<Record<string, unknown>>
  /** Fillings for `requires` and `optional`. */
  readonly needs?: Readonly<Record<string, Disposable>>
  /** Capabilities by seam id that `check` sees of other plugins. */
  readonly peers?: Readonly<Record<string, Capabilities>>
  /** Facts of the run that differ from one trainer, orchestrator and inference under the profile `fp32`. */
  readonly run?: Partial<RunFacts>
}

/** What a case of the plugin suite runs on. */
export interface PluginContext extends SuiteContext {
  readonly definition: AnyPlugin
  readonly claims: readonly Claim[]
  readonly packageName: string
  /** `trilithon` of the package.json; undefined where there is none. */
  readonly manifestField: unknown
  /** Module to import: the source where the package names one for its own workspace, else what is published. */
  readonly entry: string
  /** `entry` as a manifest writes it. */
  readonly publishedEntry: string
  parseConfig(): Record<string, unknown>
  checkProblems(): readonly unknown[]
  create(): Promise<Disposable>
}

interface PackageJson {
  readonly name?: string
  readonly main?: string
  readonly exports?: string | Readonly<Record<string, unknown>>
  readonly trilithon?: unknown
}

export function openPluginContext(definition: AnyPlugin, options: DescribePluginOptions): PluginContext {
  const root = typeof options.packageRoot === 'string' ? options.packageRoot : fileURLToPath(options.packageRoot)
  const packageJson = readPackageJson(join(root, 'package.json'))
  const claims: readonly Claim[] = definition.claims
  const { published, source } = entranceOf(packageJson)
  const manifest = PluginManifest.safeParse(packageJson.trilithon)
  const publishedEntry = manifest.success ? manifest.data.entry : published
  // The source stands for what is built from it, and for no other entry.
  const entry = source !== undefined && join(publishedEntry) === join(published) ? source : publishedEntry

  const run: RunFacts = {
    roles: ['trainer', 'orchestrator', 'inference'],
    workingDirectory: root,
    numericsProfile: 'fp32',
    resolved: {},
    ...options.run,
  }
  const parseConfig = () => Object.fromEntries(claims.map((claim) => [claim.at, parseExample(claim, options.config?.[claim.at] ?? {})]))
  return {
    definition,
    claims,
    packageName: packageJson.name ?? '',
    manifestField: packageJson.trilithon,
    entry: join(root, entry),
    publishedEntry,
    parseConfig,
    checkProblems: () => [...(definition.check?.({ config: parseConfig(), run, peer: (seam) => options.peers?.[seam.id] }) ?? [])],
    create: async () => {
      // AnyPlugin has forgotten what its needs are; their types were checked where it was defined.
      const needs = (options.needs ?? {}) as never
      return definition.create({ config: parseConfig(), run, needs, log: silentLogger, signal: new AbortController().signal })
    },
    close: async () => undefined,
  }
}

function readPackageJson(path: string): PackageJson {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new TrilithonError('USAGE_INVALID', `describePlugin finds no package.json that can be read at ${path}.`, {
      path,
      hint: "Give the folder of the plugin's package.json as packageRoot.",
      cause,
    })
  }
}

function parseExample({ at, keys }: Claim, table: unknown): unknown {
  const result = keys.safeParse(table)
  if (result.success) return result.data
  throw new TrilithonError('CONFIG_VALUE_INVALID', `The example of ${at} is not valid:\n${z.prettifyError(result.error)}`, {
    path: at,
    hint: `Give describePlugin an example that is: { config: { '${at}': … } }.`,
  })
}

/** The package's own entrance, as published and, in a workspace, the source that it is built from. */
function entranceOf({ exports, main }: PackageJson): { published: string; source: string | undefined } {
  const entrance = typeof exports === 'object' ? (exports['.'] ?? exports) : exports
  if (typeof entrance === 'string') return { published: entrance, source: undefined }
  const { default: byDefault, import: byImport, 'trilithon-src': source } = (entrance ?? {}) as Record<string, unknown>
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return { published: text(byDefault) ?? text(byImport) ?? main ?? './index.js', source: text(source) }
}
