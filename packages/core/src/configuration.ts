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

/** Answers whether a key was written by the user (in a file, by a flag, or copied from a shared key). Dotted path below the root. */
export type IsGiven = (path: string) => boolean

/**
 * A root of the configuration (`trainer`, `sft`, …), owned by its role's package. Everything in it is pure.
 *
 * The schema holds prime-rl's keys with its defaults and our own. Every key is described and has a default, and where null is allowed null is a
 * value of its own. Metadata on a key (`schema.meta({ … })`) is read by the runtime: see `KeyMeta`.
 */
export interface ConfigurationRoot<Schema extends z.ZodObject = z.ZodObject> {
  readonly name: string
  readonly schema: Schema
  readonly moves?: readonly ConfigurationMove[]
  /** Values that follow from others. Runs after the schema, before `rules`; returns a new object. */
  derive?(config: z.output<Schema>, isGiven: IsGiven): z.output<Schema>
  /** One problem per broken rule between keys; `path` is below the root. */
  rules?(config: z.output<Schema>, isGiven: IsGiven): Iterable<CheckProblem>
}

/** Metadata of a key, given with `.meta()`. */
export interface KeyMeta {
  readonly description?: string
  /**
   * The key's feature is not built yet: one sentence why. The key parses; at a value other than its default the dry run lists it, and a real
   * start stops with `FEATURE_UNAVAILABLE`.
   */
  readonly unavailable?: string
  /** Only an external backend reads the key: one sentence why the embedded one does without. Listed by the dry run, never an error. */
  readonly externalOnly?: string
  /** The table is filled by a plugin that claims `at` this path with the table's `type`; the value is that of the default plugin. */
  readonly pluginSlot?: string
}

/** Identity at run time; types `derive` and `rules` from the schema. */
export function defineConfigurationRoot<Schema extends z.ZodObject>(root: ConfigurationRoot<Schema>): ConfigurationRoot<Schema> {
  return root
}
