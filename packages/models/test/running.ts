/** Forward passes in both back-ends, as arrays of the host. */
import { fromArray, noGrad, record, scope, type Tensor, toArray } from '@trilithon/tensor'
import { createPackedContext, createPagedContext, type ForwardOptions, KVPages, type Model, type PagedSequence } from '../src/index.ts'

export const valuesOf = (tensor: Tensor) => toArray(tensor) as Float32Array

/** Hidden states of packed documents. */
export function packedHidden(model: Model, documents: readonly (readonly number[])[], options: ForwardOptions = {}): Float32Array {
  return scope(() => {
    const context = createPackedContext(documents.map(({ length }) => length))
    return valuesOf(model.forward(documents.flat(), context, options).hidden)
  })
}

/** Log-probability of each token of a document but the first, from the packed forward. */
export function packedLogprobs(model: Model, ids: readonly number[]): Float32Array {
  return scope(() => {
    const { hidden } = model.forward(ids, createPackedContext([ids.length]))
    return valuesOf(model.score(hidden, [...ids.slice(1), 0]).logprobs).slice(0, -1)
  })
}

/** A row of documents that are fed in pieces, each piece a forward of its own, through pages in an order of their own. */
export function pagedHidden(
  model: Model,
  documents: readonly (readonly number[])[],
  pieces: readonly number[],
  blockSize: number,
): Float32Array[] {
  const blocks = documents.map(({ length }) => Math.ceil(length / blockSize))
  const total = blocks.reduce((sum, count) => sum + count, 0) + 3
  const pages = new KVPages(model.config, total, blockSize, model.dtype)
  try {
    // Pages in descending order and interleaved, as an engine that has run for a while has them.
    let free = total
    const table = documents.map(() => [] as number[])
    for (let slot = 0; slot < Math.max(...blocks); slot++)
      for (const [index, count] of blocks.entries()) if (slot < count) table[index]?.push(--free)
    const results = documents.map(() => [] as number[])
    const done = documents.map(() => 0)
    for (let step = 0; done.some((count, index) => count < (documents[index] as readonly number[]).length); step++) {
      const sequences: (PagedSequence & { index: number })[] = []
      for (const [index, document] of documents.entries()) {
        const cachedTokens = done[index] as number
        // Documents are out of step with each other.
        const newTokens = Math.min(pieces[(step + index) % pieces.length] as number, document.length - cachedTokens)
        if (newTokens > 0) sequences.push({ index, cachedTokens, newTokens, pages: table[index] as number[] })
      }
      noGrad(() =>
        scope(() => {
          const ids = sequences.flatMap(({ index, cachedTokens, newTokens }) =>
            (documents[index] as readonly number[]).slice(cachedTokens, cachedTokens + newTokens),
          )
          const { hidden } = model.forward(ids, createPagedContext(pages, sequences))
          const values = valuesOf(hidden)
          let row = 0
          for (const { index, newTokens } of sequences) {
            results[index]?.push(...values.subarray(row * hidden.dim(1), (row + newTokens) * hidden.dim(1)))
            row += newTokens
            done[index] = (done[index] as number) + newTokens
          }
        }),
      )
    }
    return results.map((values) => Float32Array.from(values))
  } finally {
    pages.dispose()
  }
}

/** Gradients of all parameters, and the log-probabilities, of the loss sum of weight * log-probability of the next token. */
export function trainStep(
  model: Model,
  documents: readonly (readonly number[])[],
  options: ForwardOptions = {},
): { logprobs: Float32Array; gradients: Map<string, Float32Array> } {
  return record((tape) => {
    const ids = documents.flat()
    const { hidden, indexLosses } = model.forward(ids, createPackedContext(documents.map(({ length }) => length)), options)
    const { logprobs } = model.score(hidden, [...ids.slice(1), 0])
    const seeds = [{ output: logprobs, gradient: seedOf(logprobs) }]
    for (const loss of indexLosses.values()) seeds.push({ output: loss, gradient: seedOf(loss) })
    tape.backward(seeds)
    const gradients = new Map<string, Float32Array>()
    for (const parameter of model.parameters()) {
      if (parameter.gradient !== null) gradients.set(parameter.name, valuesOf(parameter.gradient))
      parameter.zeroGradient()
    }
    return { logprobs: valuesOf(logprobs), gradients }
  })
}

function seedOf(output: Tensor): Tensor {
  const values = Array.from({ length: output.elements }, (_, index) => Math.cos(index))
  return fromArray(output.dtype, output.shape, values)
}
