/** One case per way to call an op: what it takes, so that the tests can ask every op the same questions. */
import type { DType } from '@trilithon/native'
import {
  type AttentionTarget,
  add,
  attention,
  type ChosenKeys,
  copy,
  embedding,
  expertLinear,
  fromArray,
  headMatmul,
  indexerKl,
  indexScores,
  latentAttention,
  latentAttentionWithLse,
  layerNorm,
  linear,
  lmHead,
  localExperts,
  matmul,
  multiply,
  packDocuments,
  reshape,
  rmsNorm,
  rope,
  rotaryTables,
  scale,
  sigmoidRouter,
  slice,
  softmaxRouter,
  split,
  swiglu,
  swigluFused,
  type Tensor,
  transpose,
} from '../src/index.ts'

export interface OpCase {
  readonly name: string
  /** Shapes of the inputs that are differentiated. */
  readonly inputs: readonly (readonly number[])[]
  /** Calls the op; what else it needs is made inside, of the dtype of the inputs. */
  readonly run: (...inputs: Tensor[]) => Tensor | readonly Tensor[]
  /** Inputs whose first dim is that of the first output, row by row: a row alone must give the same bits. */
  readonly rows?: readonly number[]
}

const ids = (values: readonly number[]) => fromArray('i32', [values.length], values)

const tablesFor = (x: Tensor, half: number) =>
  rotaryTables(
    ids(Array.from({ length: x.dim(0) }, (_, i) => 5 * i + 3)),
    fromArray(
      x.dtype,
      [half],
      Array.from({ length: half }, (_, i) => 100 ** (-i / half)),
    ),
  )

const chosenKeys = (): ChosenKeys => ({ indices: fromArray('i32', [4, 2], [0, 9, 0, 1, 0, 2, 1, 3]), counts: ids([1, 2, 2, 2]) })

/** An attention of two heads over four rows, for indexers to learn from. */
function attentionTarget(dtype: DType, chosen: ChosenKeys | null): AttentionTarget {
  const wave = (shape: readonly number[], phase: number) =>
    fromArray(
      dtype,
      shape,
      Array.from({ length: shape.reduce((count, size) => count * size, 1) }, (_, i) => Math.fround(Math.sin(3 * i + phase))),
    )
  const q = { latent: wave([4, 2, 5], 0), rotary: wave([4, 2, 3], 1) }
  const keys = { latent: wave([4, 5], 2), rotary: wave([4, 3], 3) }
  const { lse } = latentAttentionWithLse(q, keys, packDocuments([4]), chosen, 0.4)
  return { q, keys, lse, scale: 0.4 }
}

export const opCases: readonly OpCase[] = [
  { name: 'rms-norm', inputs: [[3, 5], [5]], run: (x, weight) => rmsNorm(x as Tensor, weight as Tensor, 1e-5), rows: [0] },
  {
    name: 'layer-norm with bias',
    inputs: [[3, 5], [5], [5]],
    run: (x, weight, bias) => layerNorm(x as Tensor, weight as Tensor, bias as Tensor, 1e-5),
    rows: [0],
  },
  { name: 'layer-norm', inputs: [[3, 5], [5]], run: (x, weight) => layerNorm(x as Tensor, weight as Tensor, null, 1e-5), rows: [0] },
  { name: 'rope, halves', inputs: [[3, 2, 6]], run: (x) => rope(x as Tensor, tablesFor(x as Tensor, 2), false) },
  { name: 'rope, interleaved', inputs: [[3, 2, 6]], run: (x) => rope(x as Tensor, tablesFor(x as Tensor, 3), true) },
  {
    name: 'swiglu',
    inputs: [
      [3, 4],
      [3, 4],
    ],
    run: (gate, up) => swiglu(gate as Tensor, up as Tensor),
    rows: [0, 1],
  },
  { name: 'swiglu, fused', inputs: [[3, 8]], run: (gateUp) => swigluFused(gateUp as Tensor), rows: [0] },
  { name: 'embedding', inputs: [[5, 3]], run: (table) => embedding(ids([4, 0, 4, 1]), table as Tensor) },
  {
    name: 'linear',
    inputs: [
      [3, 5],
      [4, 5],
    ],
    run: (x, weight) => linear(x as Tensor, weight as Tensor),
    rows: [0],
  },
  {
    name: 'linear with bias',
    inputs: [[3, 5], [4, 5], [4]],
    run: (x, weight, bias) => linear(x as Tensor, weight as Tensor, { bias: bias as Tensor }),
    rows: [0],
  },
  {
    name: 'matmul',
    inputs: [
      [3, 5],
      [5, 4],
    ],
    run: (a, b) => matmul(a as Tensor, b as Tensor),
    rows: [0],
  },
  {
    name: 'head-matmul',
    inputs: [
      [3, 2, 5],
      [2, 5, 4],
    ],
    run: (x, weight) => headMatmul(x as Tensor, weight as Tensor),
    rows: [0],
  },
  {
    name: 'head-matmul, transposed',
    inputs: [
      [3, 2, 4],
      [2, 5, 4],
    ],
    run: (x, weight) => headMatmul(x as Tensor, weight as Tensor, true),
    rows: [0],
  },
  {
    name: 'a residual layer, whose input is used three times',
    inputs: [[3, 4], [4, 4], [4]],
    run: (x, weight, norm) => {
      const inner = linear(rmsNorm(x as Tensor, norm as Tensor, 1e-5), weight as Tensor, { bias: norm as Tensor })
      return swiglu(linear(swiglu(inner, x as Tensor), weight as Tensor), x as Tensor)
    },
    rows: [0],
  },
  {
    name: 'attention over documents',
    inputs: [
      [5, 4, 3],
      [5, 2, 3],
      [5, 2, 6],
    ],
    run: (q, k, v) => attention(q as Tensor, k as Tensor, v as Tensor, packDocuments([3, 2]), 0.5),
  },
  {
    name: 'attention of chunks',
    inputs: [
      [3, 2, 4],
      [5, 2, 4],
      [5, 2, 4],
    ],
    run: (q, k, v) => {
      const chunks = { starts: ids([0, 1, 3]), documents: ids([0, 1]), positions: ids([2, 0]) }
      return attention(q as Tensor, k as Tensor, v as Tensor, { ...packDocuments([3, 2]), chunks }, 0.5)
    },
  },
  {
    name: 'expert-linear, one expert without rows',
    inputs: [
      [5, 3],
      [3, 4, 3],
    ],
    run: (x, weight) => expertLinear(x as Tensor, weight as Tensor, ids([0, 2, 2, 5])),
  },
  {
    name: 'add',
    inputs: [
      [3, 4],
      [3, 4],
    ],
    run: (a, b) => add(a as Tensor, b as Tensor),
    rows: [0, 1],
  },
  { name: 'add, the same twice', inputs: [[3, 4]], run: (a) => add(a as Tensor, a as Tensor) },
  {
    name: 'multiply',
    inputs: [
      [3, 4],
      [3, 4],
    ],
    run: (a, b) => multiply(a as Tensor, b as Tensor),
    rows: [0, 1],
  },
  { name: 'multiply, a cube', inputs: [[3, 4]], run: (a) => multiply(multiply(a as Tensor, a as Tensor), a as Tensor) },
  { name: 'scale and copy', inputs: [[3, 4]], run: (x) => copy(scale(x as Tensor, -1.5)), rows: [0] },
  {
    name: 'views: transposed, cut and reshaped',
    inputs: [[3, 4, 2]],
    run: (x) => {
      const turned = transpose(x as Tensor, 0, -1)
      const [left, right] = split(reshape(copy(turned), [2, 12]), 1, [5, 7]) as [Tensor, Tensor]
      return add(slice(right, 1, 1, 6), left)
    },
  },
  {
    name: 'latent attention, all keys',
    inputs: [
      [4, 2, 5],
      [4, 2, 3],
      [4, 5],
      [4, 3],
    ],
    run: (q, qRope, latent, rotary) =>
      latentAttention(
        { latent: q as Tensor, rotary: qRope as Tensor },
        { latent: latent as Tensor, rotary: rotary as Tensor },
        packDocuments([3, 1]),
        null,
        0.4,
      ),
  },
  {
    name: 'latent attention, chosen keys',
    inputs: [
      [4, 2, 5],
      [4, 2, 3],
      [4, 5],
      [4, 3],
    ],
    run: (q, qRope, latent, rotary) =>
      latentAttention(
        { latent: q as Tensor, rotary: qRope as Tensor },
        { latent: latent as Tensor, rotary: rotary as Tensor },
        packDocuments([4]),
        { indices: fromArray('i32', [4, 2], [0, 9, 0, 1, 0, 2, 1, 3]), counts: ids([1, 2, 2, 2]) },
        0.4,
      ),
  },
  {
    name: 'lm-head',
    inputs: [
      [3, 4],
      [7, 4],
    ],
    run: (hidden, weight) =>
      lmHead(hidden as Tensor, weight as Tensor, ids([6, 0, 3]), fromArray((hidden as Tensor).dtype, [3], [1, 0.7, 2])).logprobs,
  },
  {
    name: 'softmax router',
    inputs: [[3, 5]],
    run: (logits) => softmaxRouter(logits as Tensor, { topK: 2, isNormalised: true }).weights,
    rows: [0],
  },
  {
    name: 'softmax router, not normalised, replayed',
    inputs: [[3, 5]],
    run: (logits) =>
      softmaxRouter(logits as Tensor, { topK: 2, isNormalised: false, given: fromArray('u8', [3, 2], [4, 0, 1, 2, 3, 0]) }).weights,
  },
  {
    name: 'sigmoid router',
    inputs: [[3, 6]],
    run: (logits) => {
      const bias = fromArray((logits as Tensor).dtype, [6], [0.1, -0.2, 0.3, 0, 0.2, -0.1])
      return sigmoidRouter(logits as Tensor, { topK: 2, bias, groups: 3, groupsKept: 2, isNormalised: true, scale: 2.5 }).weights
    },
    rows: [0],
  },
  {
    name: 'a mixture of experts',
    inputs: [
      [4, 3],
      [4, 3],
      [4, 2, 3],
      [4, 3, 2],
    ],
    run: (x, gate, up, down) => {
      const routing = softmaxRouter(linear(x as Tensor, gate as Tensor), { topK: 2, isNormalised: true })
      const { y } = localExperts.run(x as Tensor, routing.ids, routing.weights, 4, (rows, starts) =>
        expertLinear(expertLinear(rows, up as Tensor, starts), down as Tensor, starts),
      )
      return add(y, x as Tensor)
    },
    rows: [0],
  },
  {
    name: 'index scores of chosen keys',
    inputs: [
      [4, 2, 3],
      [4, 3],
      [4, 2],
    ],
    run: (q, k, weights) =>
      indexScores({ q: q as Tensor, k: k as Tensor, weights: weights as Tensor }, packDocuments([4]), chosenKeys(), 0.5),
  },
  {
    name: 'indexer-kl of chosen keys',
    inputs: [
      [4, 2, 3],
      [4, 3],
      [4, 2],
    ],
    run: (q, k, weights) => {
      const index = { q: q as Tensor, k: k as Tensor, weights: weights as Tensor }
      return indexerKl(index, attentionTarget(index.q.dtype, chosenKeys()), packDocuments([4]), chosenKeys(), 0.5)
    },
  },
  {
    name: 'indexer-kl of all keys',
    inputs: [
      [4, 2, 3],
      [4, 3],
      [4, 2],
    ],
    run: (q, k, weights) => {
      const index = { q: q as Tensor, k: k as Tensor, weights: weights as Tensor }
      return indexerKl(index, attentionTarget(index.q.dtype, null), packDocuments([4]), null, 0.5)
    },
  },
]
