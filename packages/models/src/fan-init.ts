import type { CommonConfig } from './config/common-keys.ts'
import type { WeightInit, WeightSpec } from './weight-spec.ts'

/**
 * How a weight begins by its fan-in, the inputs of one row: a matrix with a standard deviation of 1/√(3·fan-in); the indexer's with 1/√fan-in, because a choice among
 * keys wants scores that differ; the embedding with 1, since a norm follows it, unless it is the head too. What begins as a constant stays as it is.
 *
 * For small models: with a deviation of 0.02 a narrow one begins as a function of almost nothing, and takes hundreds of steps to leave that.
 */
export function fanInit({ name, shape, init }: WeightSpec, { tiedEmbeddings }: CommonConfig): WeightInit {
  if (init.kind === 'constant') return init
  if (name === 'model.embed_tokens.weight' && !tiedEmbeddings) return { kind: 'normal', std: 1 }
  const fanIn = shape.at(-1) ?? 1
  return { kind: 'normal', std: 1 / Math.sqrt(name.includes('.indexer.') ? fanIn : 3 * fanIn) }
}
