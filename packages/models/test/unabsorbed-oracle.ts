/**
 * GLM-5's forward pass in plain double arithmetic, attention in the unabsorbed form: keys and values of every head are made from the latent rows. An oracle
 * for the absorbed form; for models of a few thousand parameters.
 */
import { type Parameter, toArray } from '@trilithon/tensor'
import type { GlmMoeDsaConfig, Model } from '../src/index.ts'

type Matrix = number[][]

/** Final hidden states of one document. `keysOf` says which positions a row of a layer attends to. */
export function unabsorbedHidden(model: Model, ids: readonly number[], keysOf: (layer: number, row: number) => readonly number[]): Matrix {
  const config = model.config as GlmMoeDsaConfig
  const values = remember((name) => [...(toArray((model.weights.get(name) as Parameter).value) as Float32Array)])
  const matrices = remember((key) => {
    const [name, columns] = key.split(' ') as [string, string]
    return rowsOf(values(name), Number(columns))
  })
  const matrix = (name: string, columns: number): Matrix => matrices(`${name} ${columns}`)
  const { hiddenSize, rmsNormEps: eps } = config
  const table = matrix('model.embed_tokens.weight', hiddenSize)
  let x = ids.map((id) => [...(table[id] as number[])])
  for (let layer = 0; layer < config.layers; layer++) {
    const name = `model.layers.${layer}`
    const h = x.map((row) => rmsNorm(row, values(`${name}.input_layernorm.weight`), eps))
    x = add(
      x,
      attention(config, h, (row) => keysOf(layer, row), `${name}.self_attn`, values, matrix),
    )
    const h2 = x.map((row) => rmsNorm(row, values(`${name}.post_attention_layernorm.weight`), eps))
    const mlp = (prefix: string) => (row: number[]) =>
      swiglu(row, matrix(`${prefix}.gate_proj.weight`, hiddenSize), matrix(`${prefix}.up_proj.weight`, hiddenSize), (width) =>
        matrix(`${prefix}.down_proj.weight`, width),
      )
    x = add(
      x,
      config.sparseLayers[layer] === true
        ? h2.map((row) => addRows(experts(config, row, `${name}.mlp`, values, matrix), mlp(`${name}.mlp.shared_experts`)(row)))
        : h2.map(mlp(`${name}.mlp`)),
    )
  }
  return x.map((row) => rmsNorm(row, values('model.norm.weight'), eps))
}

type Values = (name: string) => number[]
type Weights = (name: string, columns: number) => Matrix

function attention(
  config: GlmMoeDsaConfig,
  h: Matrix,
  keysOf: (row: number) => readonly number[],
  name: string,
  values: Values,
  matrix: Weights,
): Matrix {
  const { heads, hiddenSize, qLoraRank, kvLoraRank, qkNopeHeadDim: nope, qkRopeHeadDim: rotary, vHeadDim, rmsNormEps: eps } = config
  const width = nope + rotary
  const up = matrix(`${name}.kv_b_proj.weight`, kvLoraRank)
  const q = h.map((row) =>
    product(
      rmsNorm(product(row, matrix(`${name}.q_a_proj.weight`, hiddenSize)), values(`${name}.q_a_layernorm.weight`), eps),
      matrix(`${name}.q_b_proj.weight`, qLoraRank),
    ),
  )
  const kv = h.map((row) => product(row, matrix(`${name}.kv_a_proj_with_mqa.weight`, hiddenSize)))
  const latent = kv.map((row) => rmsNorm(row.slice(0, kvLoraRank), values(`${name}.kv_a_layernorm.weight`), eps))
  const expanded = latent.map((row) => product(row, up))
  const keyRotary = kv.map((row, position) => rotate(row.slice(kvLoraRank), position, config.rope.theta))
  return h.map((_, row) => {
    const out: number[] = []
    for (let head = 0; head < heads; head++) {
      const query = (q[row] as number[]).slice(head * width, (head + 1) * width)
      const full = [...query.slice(0, nope), ...rotate(query.slice(nope), row, config.rope.theta)]
      const begin = head * (nope + vHeadDim)
      const keys = keysOf(row)
      const scores = keys.map(
        (key) => dot(full, [...(expanded[key] as number[]).slice(begin, begin + nope), ...(keyRotary[key] as number[])]) / Math.sqrt(width),
      )
      const weights = softmax(scores)
      for (let v = 0; v < vHeadDim; v++)
        out.push(
          weights.reduce((sum, weight, i) => sum + weight * ((expanded[keys[i] as number] as number[])[begin + nope + v] as number), 0),
        )
    }
    return product(out, matrix(`${name}.o_proj.weight`, heads * vHeadDim))
  })
}

function experts(config: GlmMoeDsaConfig, row: number[], name: string, values: Values, matrix: Weights): number[] {
  const { experts: count, expertsPerToken, expertGroups, topKGroups, expertWidth, hiddenSize, routedScalingFactor } = config
  const scores = product(row, matrix(`${name}.gate.weight`, hiddenSize)).map((z) => 1 / (1 + Math.exp(-z)))
  const bias = values(`${name}.gate.e_score_correction_bias`)
  const choice = scores.map((score, expert) => score + (bias[expert] as number))
  const size = count / expertGroups
  const groups = Array.from({ length: expertGroups }, (_, group) => group)
  const groupScore = (group: number) =>
    sum(
      choice
        .slice(group * size, (group + 1) * size)
        .sort((a, b) => b - a)
        .slice(0, 2),
    )
  const kept = new Set(expertGroups === 1 ? groups : groups.sort((a, b) => groupScore(b) - groupScore(a)).slice(0, topKGroups))
  const chosen = choice
    .map((score, expert) => ({ score, expert }))
    .filter(({ expert }) => kept.has(Math.floor(expert / size)))
    .sort((a, b) => b.score - a.score)
    .slice(0, expertsPerToken)
  const total = sum(chosen.map(({ expert }) => scores[expert] as number)) + 1e-20
  const gateUp = matrix(`${name}.experts.gate_up_proj`, hiddenSize)
  const down = matrix(`${name}.experts.down_proj`, expertWidth)
  let y = row.map(() => 0)
  for (const { expert } of chosen) {
    const first = expert * 2 * expertWidth
    const out = swiglu(row, gateUp.slice(first, first + expertWidth), gateUp.slice(first + expertWidth, first + 2 * expertWidth), () =>
      down.slice(expert * hiddenSize, (expert + 1) * hiddenSize),
    )
    y = addRows(
      y,
      out.map((value) => (routedScalingFactor * (scores[expert] as number) * value) / total),
    )
  }
  return y
}

function remember<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>()
  return (key) => {
    const value = made.get(key) ?? make(key)
    made.set(key, value)
    return value
  }
}

function rowsOf(values: number[], columns: number): Matrix {
  return Array.from({ length: values.length / columns }, (_, row) => values.slice(row * columns, (row + 1) * columns))
}
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((total, value, i) => total + value * (b[i] as number), 0)
const product = (row: readonly number[], weight: Matrix) => weight.map((weights) => dot(row, weights))
const addRows = (a: readonly number[], b: readonly number[]) => a.map((value, i) => value + (b[i] as number))
const add = (a: Matrix, b: Matrix) => a.map((row, i) => addRows(row, b[i] as number[]))

function rmsNorm(row: readonly number[], weight: readonly number[], eps: number): number[] {
  const scale = 1 / Math.sqrt(dot(row, row) / row.length + eps)
  return row.map((value, i) => value * scale * (weight[i] as number))
}

function softmax(scores: readonly number[]): number[] {
  const most = Math.max(...scores)
  const exponentials = scores.map((score) => Math.exp(score - most))
  return exponentials.map((value) => value / sum(exponentials))
}

/** Interleaved pairs. */
function rotate(values: readonly number[], position: number, theta: number): number[] {
  return values.map((value, i) => {
    const angle = position * theta ** (-(i - (i % 2)) / values.length)
    return i % 2 === 0
      ? value * Math.cos(angle) - (values[i + 1] as number) * Math.sin(angle)
      : value * Math.cos(angle) + (values[i - 1] as number) * Math.sin(angle)
  })
}

function swiglu(row: readonly number[], gate: Matrix, up: Matrix, down: (width: number) => Matrix): number[] {
  const u = product(row, up)
  const a = product(row, gate).map((g, i) => (g / (1 + Math.exp(-g))) * (u[i] as number))
  return product(a, down(a.length))
}
