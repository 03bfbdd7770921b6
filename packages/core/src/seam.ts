import type { Role } from './data/rollout.ts'

declare const filling: unique symbol

/**
 * A seam's token: the value half of an interface of the same name. `T` is what a plugin that fills it creates.
 *
 * The key is `Symbol.for`, so two installed copies of core agree on it; a changed contract is a new version and a new key.
 */
export interface Seam<T, Count extends 'one' | 'many' = 'one' | 'many'> {
  /** kebab-case, as manifests spell it: `kv-store`. */
  readonly id: string
  readonly version: number
  readonly key: symbol
  /** `one`: a single plugin per run; `many`: each claims its own part. */
  readonly cardinality: Count
  /** Which thread of a role calls it: `main` (HTTP, transports) or `worker` (model code). */
  readonly thread: 'main' | 'worker'
  readonly runsIn: readonly Role[]
  readonly [filling]?: T
}

/** Everything that a plugin creates can be given back. `dispose` may be called again and then does nothing. */
export interface Disposable {
  dispose(): Promise<void>
}

/** Creates the token of a seam. Only core calls it for seams of this project; a role package may define its own. */
export function defineSeam<T extends Disposable, Count extends 'one' | 'many' = 'one'>(seam: Omit<Seam<T, Count>, 'key'>): Seam<T, Count> {
  return { ...seam, key: Symbol.for(`@trilithon/seam/${seam.id}@${seam.version}`) }
}
