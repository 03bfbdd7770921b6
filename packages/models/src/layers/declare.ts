import type { CommonConfig } from '../config/common-keys.ts'
import type { StoredPart, WeightInit, WeightSpec } from '../weight-spec.ts'

/** Short forms in which families declare their weights. A weight that is one tensor on disk has its own name there. */
export interface Declare {
  readonly matrix: (name: string, rows: number, columns: number, more?: Partial<WeightSpec>) => WeightSpec
  readonly vector: (name: string, size: number, value: number, more?: Partial<WeightSpec>) => WeightSpec
  /** `{prefix}.experts.gate_up_proj` and `.down_proj`: one tensor per expert on disk, gate rows before up rows. */
  readonly experts: (prefix: string, experts: number, width: number) => WeightSpec[]
}

/** Declares weights of one gathering unit. Projections back into the residual stream begin smaller, by the root of twice the layers. */
export function declareIn(unit: string, config: CommonConfig): Declare {
  const normal = (std: number): WeightInit => ({ kind: 'normal', std })
  const whole = (name: string, shape: readonly number[]): StoredPart[] => [{ name, shape, offset: 0 }]
  const residual = config.initializerRange / Math.sqrt(2 * config.layers)
  const hidden = config.hiddenSize
  return {
    matrix(name, rows, columns, more) {
      const std = /\.(o_proj|down_proj)\.weight$/.test(name) ? residual : config.initializerRange
      const shape = [rows, columns]
      return { name, shape, kind: 'dense', unit, parts: whole(name, shape), init: normal(std), trained: 'always', ...more }
    },
    vector(name, size, value, more) {
      return {
        name,
        shape: [size],
        kind: 'dense',
        unit,
        parts: whole(name, [size]),
        init: { kind: 'constant', value },
        trained: 'always',
        ...more,
      }
    },
    experts(prefix, experts, width) {
      const part = (expert: number, projection: string, shape: readonly number[], offset: number): StoredPart => ({
        name: `${prefix}.experts.${expert}.${projection}.weight`,
        shape,
        offset,
      })
      const indices = Array.from({ length: experts }, (_, expert) => expert)
      const size = width * hidden
      return [
        {
          name: `${prefix}.experts.gate_up_proj`,
          shape: [experts, 2 * width, hidden],
          kind: 'expert',
          unit,
          parts: indices.flatMap((expert) => [
            part(expert, 'gate_proj', [width, hidden], 2 * expert * size),
            part(expert, 'up_proj', [width, hidden], (2 * expert + 1) * size),
          ]),
          init: normal(config.initializerRange),
          trained: 'always',
        },
        {
          name: `${prefix}.experts.down_proj`,
          shape: [experts, hidden, width],
          kind: 'expert',
          unit,
          parts: indices.map((expert) => part(expert, 'down_proj', [hidden, width], expert * size)),
          init: normal(residual),
          trained: 'always',
        },
      ]
    },
  }
}

/** Embedding before the layers; final norm and (unless it is tied) head after them. */
export function* declareEnds(config: CommonConfig, layers: Iterable<WeightSpec>): Iterable<WeightSpec> {
  yield declareIn('model.embed_tokens', config).matrix('model.embed_tokens.weight', config.vocabSize, config.hiddenSize)
  yield* layers
  yield declareIn('lm_head', config).vector('model.norm.weight', config.hiddenSize, 1)
  if (!config.tiedEmbeddings) yield declareIn('lm_head', config).matrix('lm_head.weight', config.vocabSize, config.hiddenSize)
}

/** SwiGLU of a dense layer, or of a shared expert. */
export function declareMlp({ matrix }: Declare, prefix: string, hidden: number, width: number): WeightSpec[] {
  return [
    matrix(`${prefix}.gate_proj.weight`, width, hidden),
    matrix(`${prefix}.up_proj.weight`, width, hidden),
    matrix(`${prefix}.down_proj.weight`, hidden, width),
  ]
}
