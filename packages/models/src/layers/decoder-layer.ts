import { add, type ChosenKeys, type RotaryTables, type Tensor } from '@trilithon/tensor'
import type { ContextBackend } from '../context/context-backend.ts'
import type { LayerWeights } from './layer-weights.ts'

/** What a forward pass gives to each of its layers. */
export interface LayerCall {
  readonly context: ContextBackend
  readonly rotary: RotaryTables
  /** Experts that this layer has to take, [T, k] in the type of the routed layout; null: it chooses. */
  readonly givenRoutes: Tensor | null
  /** Rows of `givenRoutes` with all bits set choose for themselves; otherwise they are refused. */
  readonly selectMissing: boolean
  /** Keys that this layer has to take: given, or those of the nearest layer before it that has an indexer. */
  readonly givenChoice: ChosenKeys | null
  /** Attention, and an indexer's loss, see all keys. */
  readonly isDense: boolean
  /** The router says how sure it was. */
  readonly measuresRouting: boolean
}

export interface AttentionResult {
  /** [T, hidden]. */
  readonly y: Tensor
  /** Keys that were attended to, for the layers that share them. */
  readonly choice?: ChosenKeys | null
  /** Loss of the indexer by row: [T]. */
  readonly indexLoss?: Tensor | null
}

export interface FeedForwardResult {
  readonly y: Tensor
  /** Experts of each row: [T, k]. */
  readonly routes?: Tensor | null
  /** First row of each expert: i32 [experts + 1]. */
  readonly expertStarts?: Tensor | null
  /** Where the call measures routing: the share of all scores that the chosen experts of a row have, summed over rows. */
  readonly chosenShare?: number | null
}

export interface LayerResult {
  readonly x: Tensor
  readonly choice: ChosenKeys | null
  readonly indexLoss: Tensor | null
  readonly routes: Tensor | null
  readonly expertStarts: Tensor | null
  readonly chosenShare: number | null
}

export type Attention = (h: Tensor, call: LayerCall) => AttentionResult
export type FeedForward = (h: Tensor, call: LayerCall) => FeedForwardResult

export interface DecoderLayer {
  readonly index: number
  /** Gathering unit of its parameters. */
  readonly unit: string
  readonly hasExperts: boolean
  /** Whether it chooses keys itself. */
  readonly hasIndexer: boolean
  run(x: Tensor, call: LayerCall): LayerResult
}

export interface DecoderLayerParts {
  readonly attention: Attention
  readonly feedForward: FeedForward
  readonly hasExperts: boolean
  readonly hasIndexer: boolean
}

/** x += attention(norm(x)), x += feedForward(norm(x)): the block of every family. */
export function createDecoderLayer(
  index: number,
  weights: LayerWeights,
  eps: number,
  { attention, feedForward, hasExperts, hasIndexer }: DecoderLayerParts,
): DecoderLayer {
  const unit = `model.layers.${index}`
  const before = weights.rmsNorm(`${unit}.input_layernorm.weight`, eps)
  const between = weights.rmsNorm(`${unit}.post_attention_layernorm.weight`, eps)
  return {
    index,
    unit,
    hasExperts,
    hasIndexer,
    run(x, call) {
      const attended = attention(before(x), call)
      const middle = add(x, attended.y)
      const { y, routes = null, expertStarts = null, chosenShare = null } = feedForward(between(middle), call)
      const { choice = null, indexLoss = null } = attended
      return { x: add(middle, y), choice, indexLoss, routes, expertStarts, chosenShare }
    },
  }
}
