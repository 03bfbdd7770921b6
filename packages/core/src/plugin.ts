import { z } from 'zod'
import type { Role } from './data/rollout.ts'
import { roles } from './data/rollout.ts'
import type { Logger } from './logger.ts'
import type { Disposable, Seam } from './seam.ts'

/**
 * Keys of the configuration that a plugin owns. A key has one owner.
 *
 * With `type`, the claim holds where the table at `at` has that `type`, and that choice activates the plugin. Without, the plugin is
 * activated by any of its keys at a value other than its `inactive` one.
 */
export interface Claim {
  /** Dotted path of the table: `orchestrator.router`, `trainer.model`. */
  readonly at: string
  readonly type?: string
  /** Strict schema of the claimed keys, each described; for a claim with `type`, of all keys of the table but `type`. */
  readonly keys: z.ZodObject
  /** Value of a key that means "not used"; such a value is accepted although the plugin is not installed. */
  readonly inactive?: Readonly<Record<string, unknown>>
}

/** Facts that other plugins, the planner and the orchestrator read instead of asking for a plugin's name. JSON-serialisable. */
export type Capabilities = Readonly<Record<string, boolean | number | string | readonly string[]>>

export type SeamMap = Readonly<Record<string, Seam<Disposable>>>

/** A seam of many gives the list of its fillings, in the order of creation. */
type FillingOf<S> = S extends Seam<infer T, infer Count> ? ('many' extends Count ? readonly T[] : T) : never

/** What `create` receives for `requires` (present) and `optional` (perhaps). */
export type NeedsOf<Requires extends SeamMap, Optional extends SeamMap> = {
  readonly [Name in keyof Requires]: FillingOf<Requires[Name]>
} & { readonly [Name in keyof Optional]: FillingOf<Optional[Name]> | undefined }

/** Parsed configuration of a plugin by the path of each claim; absent where the claim's table is absent. */
export type ConfigOf<Claims extends readonly Claim[]> = {
  readonly [C in Claims[number] as C['at']]: z.output<C['keys']> | undefined
}

/** What is known before anything starts. */
export interface RunFacts {
  /** Roles that this composition starts. */
  readonly roles: readonly Role[]
  /** Folder that relative paths of the configuration are relative to. */
  readonly workingDirectory: string
  readonly numericsProfile: string
  /** Resolved configuration of each role, read-only. */
  readonly resolved: Readonly<Partial<Record<Role, unknown>>>
}

/** One sentence of what is wrong; as an object also where and what next. */
export type CheckProblem = string | { readonly message: string; readonly path?: string; readonly hint?: string }

export interface CheckContext<Config> {
  readonly config: Config
  readonly run: RunFacts
  /** Capabilities of the plugin chosen for another seam; undefined where none is. */
  readonly peer: (seam: Seam<Disposable>) => Capabilities | undefined
}

export interface CreateContext<Config, Needs> {
  readonly config: Config
  readonly run: RunFacts
  readonly needs: Needs
  readonly log: Logger
  /** Aborted when the run ends; long work stops then. */
  readonly signal: AbortSignal
}

export interface PluginDefinition<
  T extends Disposable = Disposable,
  Claims extends readonly Claim[] = readonly Claim[],
  Requires extends SeamMap = SeamMap,
  Optional extends SeamMap = SeamMap,
> {
  /** npm name of the package; built-in fillings add a suffix: `@trilithon/builtin/sticky-router`. */
  readonly name: string
  readonly fills: Seam<T>
  /** Roles that create it; all roles of the seam when left out. */
  readonly runsIn?: readonly Role[]
  readonly claims: Claims
  readonly requires?: Requires
  readonly optional?: Optional
  readonly capabilities?: Capabilities
  /** Native kernels that must be available, checked before `create`. */
  readonly kernels?: readonly string[]
  /** Pure: sees data, yields one sentence per problem, touches neither files nor network. */
  check?(context: CheckContext<ConfigOf<Claims>>): Iterable<CheckProblem>
  /** Starts the work; importing the package does nothing. */
  create(context: CreateContext<ConfigOf<Claims>, NeedsOf<Requires, Optional>>): T | Promise<T>
}

/** Describes a plugin. Identity at run time; `config`, `needs` and the created value are typed from the arguments. */
export function definePlugin<
  T extends Disposable,
  const Claims extends readonly Claim[],
  const Requires extends SeamMap = Record<never, never>,
  const Optional extends SeamMap = Record<never, never>,
>(definition: PluginDefinition<T, Claims, Requires, Optional>): PluginDefinition<T, Claims, Requires, Optional> {
  return definition
}

/** A definition whose types are forgotten, as the runtime holds it. */
// biome-ignore lint/suspicious/noExplicitAny: a list of plugins with different claims has no common type but this one
export type AnyPlugin = PluginDefinition<any, any, any, any>

/** The `trilithon` field of a package's `package.json`: how a plugin is found, listed and chosen without running it. */
export const PluginManifest = z.strictObject({
  seam: z.string().describe('Id of the seam, as `kv-store`.'),
  type: z.string().optional().describe('Value of `type` in the configuration that chooses the plugin.'),
  runs_in: z.array(z.enum(roles)).describe('Roles that create the plugin.'),
  claims: z
    .array(
      z.strictObject({
        at: z.string().describe('Dotted path of the table.'),
        type: z.string().optional().describe('Value of `type` in that table.'),
        keys: z.array(z.string()).describe('Claimed keys.'),
        inactive: z.record(z.string(), z.json()).optional().describe('Value of a key that means "not used".'),
      }),
    )
    .describe('What the plugin owns of the configuration.'),
  entry: z.string().describe('Module with the definition as its default export, relative to the package.'),
})
export type PluginManifest = z.infer<typeof PluginManifest>

/** The manifest that belongs to a definition; `describePlugin` checks that the package carries exactly this. */
export function manifestOf(plugin: AnyPlugin, entry: string): PluginManifest {
  const claims: readonly Claim[] = plugin.claims
  const type = claims.find((claim) => claim.type !== undefined)?.type
  return {
    seam: plugin.fills.id,
    ...(type === undefined ? {} : { type }),
    runs_in: [...(plugin.runsIn ?? plugin.fills.runsIn)],
    claims: claims.map((claim) => ({
      at: claim.at,
      ...(claim.type === undefined ? {} : { type: claim.type }),
      keys: Object.keys(claim.keys.shape),
      ...(claim.inactive === undefined ? {} : { inactive: claim.inactive as Record<string, z.core.util.JSONType> }),
    })),
    entry,
  }
}
