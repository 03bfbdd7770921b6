import type { Model } from '@trilithon/models'
import { embedding, fromArray, linear, lmHead, sampleFromHidden, sampleFromLogits, scope, type Tensor, toArray } from '@trilithon/tensor'
import type { TokenCandidate } from './engine.ts'
import type { Sequence } from './sequence.ts'

/** Rows whose logits are held at a time. */
const rowsAtOnce = 16

/** What the rows of a step gave: valid until the next. */
export interface Sampled {
  readonly tokens: Int32Array
  readonly logprobs: Float32Array
  /** By index of the sequence; empty where none were asked for. */
  readonly candidates: (readonly TokenCandidate[])[]
}

/** Chooses the next token of sequences, and reports what the trainer's head says of it, bit for bit. */
export class Sampler {
  #temperature = new Float32Array(64)
  #topK = new Int32Array(64)
  #topP = new Float32Array(64)
  #minP = new Float32Array(64)
  #seeds = new BigInt64Array(64)
  #positions = new Int32Array(64)
  #rows = new Int32Array(64)

  /** `hidden`: [rows, width] of the step; every sequence samples from its `row`. `endIds` are the end tokens of the model. */
  sample(model: Model, hidden: Tensor, sequences: readonly Sequence[], endIds: readonly number[]): Sampled {
    const count = sequences.length
    this.#collect(sequences)
    return scope(() => {
      const own = count === hidden.dim(0) ? hidden : takeRows(hidden, this.#rows.subarray(0, count))
      const rules = {
        temperature: fromArray('f32', [count], this.#temperature.subarray(0, count)),
        topK: fromArray('i32', [count], this.#topK.subarray(0, count)),
        topP: fromArray('f32', [count], this.#topP.subarray(0, count)),
        minP: fromArray('f32', [count], this.#minP.subarray(0, count)),
        seeds: fromArray('i64', [count], this.#seeds.subarray(0, count)),
        positions: fromArray('i32', [count], this.#positions.subarray(0, count)),
      }
      const sampled = model.withHead(({ parameter, packed }) => sampleFromHidden(own, parameter.value, rules, packed))
      const tokens = toArray(sampled.tokens) as Int32Array
      const logprobs = toArray(sampled.logprobs) as Float32Array
      const candidates: (readonly TokenCandidate[])[] = []
      for (let index = 0; index < count; index++) {
        const { request, generated } = sequences[index] as Sequence
        if (generated < request.sampling.minTokens) this.#sampleUnended(model, own, index, request.sampling, endIds, tokens, logprobs)
      }
      for (let index = 0; index < count; index++) {
        const { logprobs: most } = (sequences[index] as Sequence).request
        if (most !== null && most > 0)
          candidates[index] = rankedCandidates(
            model,
            takeRows(own, Int32Array.of(index)),
            [tokens[index] as number],
            this.#temperature[index] as number,
            most,
          )[0] as TokenCandidate[]
      }
      return { tokens, logprobs, candidates }
    })
  }

  #collect(sequences: readonly Sequence[]): void {
    if (this.#rows.length < sequences.length) {
      const size = sequences.length * 2
      this.#temperature = new Float32Array(size)
      this.#topK = new Int32Array(size)
      this.#topP = new Float32Array(size)
      this.#minP = new Float32Array(size)
      this.#seeds = new BigInt64Array(size)
      this.#positions = new Int32Array(size)
      this.#rows = new Int32Array(size)
    }
    for (let index = 0; index < sequences.length; index++) {
      const { request, known, row } = sequences[index] as Sequence
      const { temperature, topK, topP, minP, seed } = request.sampling
      this.#temperature[index] = temperature
      this.#topK[index] = topK
      this.#topP[index] = topP
      this.#minP[index] = minP
      this.#seeds[index] = seed
      // Of the token that is chosen, in its sequence.
      this.#positions[index] = known
      this.#rows[index] = row
    }
  }

  /** Chooses for one row, from all tokens but those that would end it. Its log-probability is still that of the whole distribution. */
  #sampleUnended(
    model: Model,
    hidden: Tensor,
    index: number,
    { stopIds, stopsAtEnd, topK, topP, minP }: Sequence['request']['sampling'],
    endIds: readonly number[],
    tokens: Int32Array,
    logprobs: Float32Array,
  ): void {
    const ends = stopsAtEnd ? [...stopIds, ...endIds] : stopIds
    if (ends.length === 0) return
    const row = takeRows(hidden, Int32Array.of(index))
    const temperature = this.#temperature[index] as number
    const logits = toArray(model.logits(row)) as Float32Array
    const { length } = logits
    for (const id of ends) if (id < length) logits[id] = Number.NEGATIVE_INFINITY
    const sampled = sampleFromLogits(fromArray('f32', [1, length], logits), {
      temperature: fromArray('f32', [1], [temperature]),
      topK: fromArray('i32', [1], [topK]),
      topP: fromArray('f32', [1], [topP]),
      minP: fromArray('f32', [1], [minP]),
      seeds: fromArray('i64', [1], this.#seeds.slice(index, index + 1)),
      positions: fromArray('i32', [1], this.#positions.slice(index, index + 1)),
    })
    const [token = 0] = toArray(sampled.tokens) as Int32Array
    tokens[index] = token
    logprobs[index] = scoresOf(model, row, [token], temperature)[0] as number
  }
}

/** Rows of a matrix by number. */
export function takeRows(matrix: Tensor, rows: Int32Array): Tensor {
  return embedding(fromArray('i32', [rows.length], rows), matrix)
}

/** What the trainer's head says of one token per row; at temperature 0 that of temperature 1. */
function scoresOf(model: Model, hidden: Tensor, targets: readonly number[], temperature: number): Float32Array {
  const count = targets.length
  return model.withHead(({ parameter, packed }) => {
    const ids = fromArray('i32', [count], targets)
    const divisors = fromArray('f32', [count], new Float32Array(count).fill(temperature === 0 ? 1 : temperature))
    return toArray(lmHead(hidden, parameter.value, ids, divisors, { packed }).logprobs) as Float32Array
  })
}

/**
 * By row: the target and its rank, then the `most` most likely tokens, of equal ones the lower first. All log-probabilities have the bits that the
 * head gives for the token: for the most likely one it gives minus the logarithm of the sum, from which those of the others follow in the order in
 * which the head takes them.
 */
export function rankedCandidates(
  model: Model,
  hidden: Tensor,
  targets: readonly number[],
  temperature: number,
  most: number,
): TokenCandidate[][] {
  const lists: TokenCandidate[][] = []
  for (let first = 0; first < targets.length; first += rowsAtOnce)
    scope(() => {
      const count = Math.min(rowsAtOnce, targets.length - first)
      const rows = takeRows(
        hidden,
        Int32Array.from({ length: count }, (_, index) => first + index),
      )
      const logits = toArray(model.withHead(({ parameter, packed }) => linear(rows, parameter.value, { packed }))) as Float32Array
      const vocabulary = logits.length / count
      const tops = Array.from({ length: count }, (_, row) =>
        topIds(logits.subarray(row * vocabulary, (row + 1) * vocabulary), Math.max(1, most)),
      )
      const best = scoresOf(
        model,
        rows,
        tops.map(([id]) => id as number),
        temperature,
      )
      const scale = Math.fround(1 / Math.fround(temperature === 0 ? 1 : temperature))
      for (let row = 0; row < count; row++) {
        const own = logits.subarray(row * vocabulary, (row + 1) * vocabulary)
        const ids = tops[row] as number[]
        const top = Math.fround((own[ids[0] as number] as number) * scale)
        const logprobOf = (id: number) => Math.fround(Math.fround(Math.fround((own[id] as number) * scale) - top) + (best[row] as number))
        const target = targets[first + row] as number
        const list = [{ id: target, logprob: logprobOf(target), rank: rankOf(own, target) }]
        for (let place = 0; place < most && place < ids.length; place++) {
          const id = ids[place] as number
          list.push({ id, logprob: logprobOf(id), rank: place + 1 })
        }
        lists.push(list)
      }
    })
  return lists
}

/** The ids of the largest values in descending order, of equal ones the lower first. */
function topIds(values: Float32Array, most: number): number[] {
  const count = Math.min(most, values.length)
  const ids: number[] = []
  for (let id = 0; id < values.length; id++) {
    const value = values[id] as number
    if (ids.length === count && !(value > (values[ids[count - 1] as number] as number))) continue
    let place = ids.length === count ? count - 1 : ids.length
    while (place > 0 && value > (values[ids[place - 1] as number] as number)) {
      ids[place] = ids[place - 1] as number
      place--
    }
    ids[place] = id
  }
  return ids
}

function rankOf(values: Float32Array, id: number): number {
  const own = values[id] as number
  let rank = 1
  for (let other = 0; other < values.length; other++) {
    const value = values[other] as number
    if (value > own || (value === own && other < id)) rank++
  }
  return rank
}
