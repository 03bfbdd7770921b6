import type { z } from 'zod'

/** Keys of the surface that a package claims, as `Claim` in core; the schema is written here until the package exists. */
export interface KnownPluginClaim {
  /** Dotted path of the table, from the name of its root. */
  readonly at: string
  /** The claim holds where the slot at `at` has this `type`. */
  readonly type?: string
  /** Each key described; at its default a key means "not used". A key without a default must be written. */
  readonly keys: z.ZodObject
  /** A typed claim is not used where every one of these keys, as far as its root is part of the composition, has that value. */
  readonly inactiveWhen?: readonly { readonly at: string; readonly is: string }[]
}

/** A package that is known to own keys, whether or not it can be installed today. */
export interface KnownPluginSource {
  readonly package: string
  /** Id of the seam that it fills, also of one that core does not type yet; left out where no seam is named. */
  readonly seam?: string
  readonly built: boolean
  readonly claims: readonly KnownPluginClaim[]
}

/** The same keys claimed in several tables. */
export function claimAll(tables: readonly string[], keys: z.ZodObject): KnownPluginClaim[] {
  return tables.map((at) => ({ at, keys }))
}
