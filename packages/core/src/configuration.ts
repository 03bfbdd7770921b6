import type { z } from 'zod'
import type { CheckProblem } from './plugin.ts'

/**
 * A key that moved or has two spellings: what is written at `from` is taken as if it stood at `to`. `*` stands for every item of a list.
 * Where both are given, `keep` says which counts; without it that is an error.
 */
export interface ConfigurationMove {
  readonly from: string
  readonly to: string
  readonly keep?: 'from' | 'to'
  /** One sentence for users of the old spelling, shown once. */
  readonly notice?: string
}

/**
 * A place whose `type` may name a plugin. Claims with a `type` at this path fill it.
 *
 * The role's schema holds either no key here or a union of the variants that the role fills itself. A table whose `type` is one of those stays
 * where it is; any other is cut out, parsed by the claim, and put back into the resolved configuration (so nothing of it reaches the schema).
 * A slot below another (`deployment.router`) is cut out first.
 */
export interface ConfigurationSlot {
  /** Dotted path below the root; `*` stands for every item of a list. */
  readonly at: string
  /** `type` of a place where nothing is written; null where it is empty then. */
  readonly defaultType: string | null
  /** `type` of a table that is written without one; `defaultType` where left out. */
  readonly impliedType?: string
  readonly description: string
}

/**
 * Answers whether a key was written by the user (in a file, by a flag, or copied from a shared key). Dotted path below the root; an item of a
 * list is its index: `train.env.0.group_size`. A table counts as written where any key below it is.
 */
export type IsGiven = (path: string) => boolean

/**
 * One sentence. With a `path` (below the root) it says why `derive` changed a key that was written; with `unused` that the key has no effect although
 * its value stays.
 */
export type ConfigurationNotice = string | { readonly message: string; readonly path: string; readonly unused?: true }

/**
 * A root of the configuration (`trainer`, `sft`, …), owned by its role's package. Everything in it is pure.
 *
 * The schema holds prime-rl's keys with its defaults and our own. Every key is described and has a default, and where null is allowed null is a
 * value of its own. Metadata on a key (`schema.meta({ … })`) is read by the runtime: see `KeyMeta`.
 */
export interface ConfigurationRoot<Schema extends z.ZodObject = z.ZodObject> {
  readonly name: string
  readonly schema: Schema
  /** Applied one after the other, before anything else. A table that moves onto a table is merged into it key by key. */
  readonly moves?: readonly ConfigurationMove[]
  readonly slots?: readonly ConfigurationSlot[]
  /** Values that follow from others. Runs after the schema, before `rules`; returns a new object. */
  derive?(config: z.output<Schema>, isGiven: IsGiven): z.output<Schema>
  /** One problem per broken rule between keys; `path` is below the root. Sees what `derive` returned. */
  rules?(config: z.output<Schema>, isGiven: IsGiven): Iterable<CheckProblem>
  /** What the user should know of a sound configuration. Sees what `derive` returned. */
  notices?(config: z.output<Schema>, isGiven: IsGiven): Iterable<ConfigurationNotice>
}

/** Metadata of a key, given with `.meta()`. */
export interface KeyMeta {
  readonly description?: string
  /**
   * The key's feature is not built yet: one sentence why. The key parses; at a value other than its default the dry run lists it, and a real
   * start stops with `FEATURE_UNAVAILABLE`. On a variant of a union it holds where the variant is chosen.
   */
  readonly unavailable?: string
  /** Only an external backend reads the key: one sentence why the embedded one does without. Listed by the dry run, never an error. */
  readonly externalOnly?: string
  /** Variable of the environment that gives the value where neither file nor flag does. */
  readonly environment?: string
}

/** Identity at run time; types `derive` and `rules` from the schema. */
export function defineConfigurationRoot<Schema extends z.ZodObject>(root: ConfigurationRoot<Schema>): ConfigurationRoot<Schema> {
  return root
}
