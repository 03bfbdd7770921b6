import { type OpaquePayload, type RoutedLayout, routedLayout } from '@trilithon/core'
import {
  type ChosenKeys,
  constant,
  type ExpertExchange,
  embedding,
  fromArray,
  linear,
  lmHead,
  localExperts,
  localParameters,
  normal,
  Parameter,
  type ParameterGathering,
  scope,
  type Tensor,
  type TokenScores,
  withUnit,
} from '@trilithon/tensor'
import type { ModelConfig } from '../config/model-config.ts'
import type { ContextBackend } from '../context/context-backend.ts'
import { familyLayers } from '../families/family-layers.ts'
import type { DecoderLayer, LayerCall } from '../layers/decoder-layer.ts'
import { LayerWeights } from '../layers/layer-weights.ts'
import type { Projection } from '../layers/projection.ts'
import { rotaryTablesOf } from '../layers/rotary.ts'
import { modelWeights } from '../model-weights.ts'
import { refuse } from '../refuse.ts'
import type { WeightSpec } from '../weight-spec.ts'
import { joinRoutes, splitRoutes } from './routed-experts.ts'
import { runLayer } from './run-layer.ts'

export interface ModelOptions {
  /** Of weights and activations. f64 is for gradient checks: every op then runs its reference. */
  readonly dtype?: 'f32' | 'f64'
  /** Weight of the indexer's own loss; 0 freezes the indexer. */
  readonly indexKlWeight?: number
  /** The hook that takes tokens to their experts and back; every expert is here unless said otherwise. */
  readonly exchange?: ExpertExchange
  /** The hook that brings the parameters of a unit; every parameter is here unless said otherwise. */
  readonly parameters?: ParameterGathering
}

export interface ForwardOptions {
  /** Computes each layer again in the backward instead of keeping what it made. */
  readonly recompute?: boolean
  /** Experts to take instead of choosing: rows × MoE layers × top_k in the model's routed layout. */
  readonly routes?: OpaquePayload | null
  /** Missing rows of `routes` choose for themselves; otherwise they are refused. */
  readonly selectMissing?: boolean
  /** Keys to take instead of choosing, by layer, for layers that have an indexer. */
  readonly choices?: ReadonlyMap<number, ChosenKeys> | null
  /** Latent attention, and the indexer's loss, over all keys instead of chosen ones: to train an indexer from nothing. */
  readonly denseAttention?: boolean
  readonly recordRoutes?: boolean
  readonly recordChoices?: boolean
  /** How sure the routers are; costs a pass over their logits. */
  readonly measureRouting?: boolean
}

export interface ScoreOptions {
  /** Of all rows, or of each. */
  readonly temperature?: number | ArrayLike<number>
  readonly entropy?: boolean
}

export interface ForwardResult {
  /** After the final norm: [rows, hidden]. */
  readonly hidden: Tensor
  /** Where it was asked for: the experts of every row, as they travel. */
  readonly routes: OpaquePayload | null
  /** Where it was asked for: the chosen keys of every layer that has an indexer. */
  readonly choices: ReadonlyMap<number, ChosenKeys> | null
  /** First row of each expert, i32 [experts + 1], by MoE layer: the differences are its load. */
  readonly expertStarts: ReadonlyMap<number, Tensor>
  /** Where it was asked for: the share of all scores that the chosen experts of a row have, summed over rows, by MoE layer. */
  readonly chosenShares: ReadonlyMap<number, number>
  /** Loss of each indexer that is trained, [rows] by layer: for the trainer to weight and to add to the model's own loss. */
  readonly indexLosses: ReadonlyMap<number, Tensor>
}

/**
 * A model of any family. The same object trains (a packed context) and serves (a paged one).
 *
 * Its parameters are declared on meta; allocate, initialise or load them before a forward. It owns them: `dispose` frees them.
 */
export class Model {
  readonly config: ModelConfig
  readonly dtype: 'f32' | 'f64'
  readonly specs: readonly WeightSpec[]
  /** By Hugging Face's name in memory, in the order of the forward pass. */
  readonly weights: ReadonlyMap<string, Parameter>
  /** How routed experts of this model travel; null without experts. */
  readonly routedLayout: RoutedLayout | null
  /** `config.json` as it was read, which `saveModel` writes again. */
  configText: string | null = null
  private readonly layers: readonly DecoderLayer[]
  private readonly layerWeights: LayerWeights
  private readonly table: Parameter
  private readonly head: Projection
  private readonly norm: (x: Tensor) => Tensor
  private readonly gathering: ParameterGathering

  constructor(config: ModelConfig, options: ModelOptions = {}) {
    this.config = config
    this.dtype = options.dtype ?? 'f32'
    this.specs = [...modelWeights(config)]
    const { indexKlWeight = 0, exchange = localExperts } = options
    this.weights = new Map(this.specs.map((spec) => [spec.name, declare(spec, indexKlWeight > 0)]))
    this.routedLayout = layoutOf(config)
    this.layerWeights = new LayerWeights(this.weights)
    this.layers = familyLayers(config, this.layerWeights, { indexKlWeight, exchange })
    this.table = this.layerWeights.parameter('model.embed_tokens.weight')
    this.head = this.layerWeights.projection(config.tiedEmbeddings ? this.table.name : 'lm_head.weight')
    this.norm = this.layerWeights.rmsNorm('model.norm.weight', config.rmsNormEps)
    this.gathering = options.parameters ?? localParameters(this.units)
  }

  parameters(): Iterable<Parameter> {
    return this.weights.values()
  }

  /** Names of the units whose parameters are gathered together, in the order of the forward pass. */
  get units(): readonly string[] {
    return [...new Set(this.specs.map(({ unit }) => unit))]
  }

  /** Takes starting values that depend on (seed, name) alone. */
  initialise(seed: number): this {
    for (const parameter of this.parameters()) parameter.initialise(seed, this.dtype)
    return this
  }

  /**
   * Hidden states of the rows of `context` after the final norm. `ids` are their tokens.
   *
   * The tensors of the result belong to the scope of the caller.
   */
  forward(ids: ArrayLike<number>, context: ContextBackend, options: ForwardOptions = {}): ForwardResult {
    this.check(ids, context)
    return scope(() => {
      const rotary = rotaryTablesOf(this.config.rope, context.positions, this.dtype)
      const given = this.givenRoutes(options.routes ?? null, context.rows)
      const tokens = fromArray('i32', [ids.length], Int32Array.from(ids))
      let x = withUnit(this.gathering, this.table.unit, () => embedding(tokens, this.table.value))
      let choice: ChosenKeys | null = null
      const routes: Tensor[] = []
      const choices = new Map<number, ChosenKeys>()
      const expertStarts = new Map<number, Tensor>()
      const chosenShares = new Map<number, number>()
      const indexLosses = new Map<number, Tensor>()
      for (const layer of this.layers) {
        if (layer.hasIndexer) choice = options.choices?.get(layer.index) ?? null
        const call: LayerCall = {
          context,
          rotary,
          givenRoutes: layer.hasExperts ? (given?.[routes.length] ?? null) : null,
          selectMissing: options.selectMissing === true,
          givenChoice: choice,
          isDense: options.denseAttention === true,
          measuresRouting: options.measureRouting === true,
        }
        const result = withUnit(this.gathering, layer.unit, () => runLayer(layer, x, call, options.recompute === true))
        // What a backward needs of it is held by the tape.
        x.dispose()
        x = result.x
        choice = result.choice
        if (result.routes !== null) routes.push(result.routes)
        if (result.choice !== null && layer.hasIndexer) choices.set(layer.index, result.choice)
        if (result.expertStarts !== null) expertStarts.set(layer.index, result.expertStarts)
        if (result.chosenShare !== null) chosenShares.set(layer.index, result.chosenShare)
        if (result.indexLoss !== null) indexLosses.set(layer.index, result.indexLoss)
      }
      const hidden = withUnit(this.gathering, 'lm_head', () => this.norm(x))
      const { routedLayout: layout } = this
      return {
        hidden,
        routes: layout !== null && options.recordRoutes === true ? joinRoutes(layout, routes, context.rows) : null,
        choices: options.recordChoices === true ? choices : null,
        expertStarts,
        chosenShares,
        indexLosses,
      }
    })
  }

  /**
   * Log-probabilities of one target per row under the distribution of the next token, and its entropy where it is asked for. Works through the
   * vocabulary in chunks.
   */
  score(hidden: Tensor, targets: ArrayLike<number>, { temperature = 1, entropy = false }: ScoreOptions = {}): TokenScores {
    const rows = hidden.dim(0)
    if (targets.length !== rows) refuse('score', 'targets', `${rows} ids, one for each row`, String(targets.length))
    this.checkIds('score', 'targets', targets)
    const temperatures = typeof temperature === 'number' ? new Array<number>(rows).fill(temperature) : Array.from(temperature)
    if (temperatures.length !== rows) refuse('score', 'temperature', `${rows} numbers, one for each row`, String(temperatures.length))
    const bad = temperatures.findIndex((value) => !(value > 0 && value < Number.POSITIVE_INFINITY))
    if (bad >= 0) refuse('score', 'temperature', 'numbers above 0', `${temperatures[bad]} in row ${bad}`)
    return scope(() => {
      const ids = fromArray('i32', [rows], Int32Array.from(targets))
      const divisors = fromArray(hidden.dtype, [rows], temperatures)
      return this.withHead(({ parameter, packed }) => lmHead(hidden, parameter.value, ids, divisors, { packed, hasEntropy: entropy }))
    })
  }

  /** Logits of hidden states, [rows, vocabulary]: for tests of small models. Everything else takes log-probabilities, in chunks. */
  logits(hidden: Tensor): Tensor {
    return this.withHead(({ parameter }) => linear(hidden, parameter.value))
  }

  /** Runs `body`, such as an engine's sampling, with the head, [vocabulary, hidden]: the embedding where the two are tied. */
  withHead<T>(body: (head: Projection) => T): T {
    return withUnit(this.gathering, this.head.parameter.unit, () => body(this.head))
  }

  /** Second layouts of all projections, which make the products of few rows faster and change no bit. Again after every change of the weights. */
  packProjections(): void {
    for (const _ of this.packProjectionsInPieces());
  }

  /** The same, one projection after another: for an engine that computes with another model between two of them. */
  *packProjectionsInPieces(): Generator<void, void> {
    for (const projection of this.layerWeights.projections) {
      projection.pack()
      yield
    }
  }

  unpackProjections(): void {
    for (const projection of this.layerWeights.projections) projection.unpack()
  }

  dispose(): void {
    this.unpackProjections()
    for (const parameter of this.parameters()) parameter.dispose()
  }

  private check(ids: ArrayLike<number>, context: ContextBackend): void {
    const { maxPositions } = this.config
    if (ids.length !== context.rows) refuse('forward', 'ids', `${context.rows} ids, the rows of the context`, String(ids.length))
    this.checkIds('forward', 'ids', ids)
    if (context.lastPosition >= maxPositions)
      refuse('forward', 'context', `documents of at most ${maxPositions} tokens`, `position ${context.lastPosition}`)
  }

  private checkIds(op: string, argument: string, ids: ArrayLike<number>): void {
    const { vocabSize } = this.config
    for (let row = 0; row < ids.length; row++) {
      const id = ids[row] as number
      if (!Number.isInteger(id) || id < 0 || id >= vocabSize)
        refuse(op, argument, `token ids from 0 to ${vocabSize - 1}`, `${id} in row ${row}`)
    }
  }

  private givenRoutes(payload: OpaquePayload | null, rows: number): readonly Tensor[] | null {
    if (payload === null) return null
    if (this.routedLayout === null) refuse('forward', 'routes', 'nothing, for a model without experts', 'routed experts')
    return splitRoutes(this.routedLayout, payload, rows)
  }
}

function layoutOf(config: ModelConfig): RoutedLayout | null {
  if (!('experts' in config)) return null
  const layers = config.sparseLayers.filter(Boolean).length
  return layers === 0 ? null : routedLayout({ experts: config.experts, layers, topK: config.expertsPerToken })
}

function declare({ name, shape, kind, unit, init, trained }: WeightSpec, trainIndexer: boolean): Parameter {
  const initialiser = init.kind === 'normal' ? normal(init.std) : constant(init.value)
  const isTrainable = trained === 'always' || (trained === 'indexer' && trainIndexer)
  return new Parameter({ name, shape, kind, unit, initialiser, isTrainable })
}
