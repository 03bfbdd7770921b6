import { createPagedContext, KVPages, type Model } from '@trilithon/models'
import { fromArray, noGrad, sampleFromLogits, scope, toArray } from '@trilithon/tensor'

export interface SampleAnswersOptions {
  readonly prompts: readonly (readonly number[])[]
  readonly stopIds: readonly number[]
  readonly maxTokens: number
  readonly temperature: number
  readonly seed: number
}

/** Prompts that are answered side by side. */
const sideBySide = 64
const blockSize = 16

/**
 * Answers to prompts, token by token over pages of keys: a plain loop, which serves for measuring. A token follows from seed, number of the prompt and
 * place, so what stands beside it changes nothing. The stop token is not part of an answer.
 */
export function sampleAnswers(model: Model, options: SampleAnswersOptions): number[][] {
  const answers: number[][] = []
  for (let first = 0; first < options.prompts.length; first += sideBySide)
    answers.push(...sampleBatch(model, options, first, options.prompts.slice(first, first + sideBySide)))
  return answers
}

interface Running {
  readonly index: number
  readonly pages: readonly number[]
  readonly answer: number[]
  /** Tokens whose keys are not in the pages yet. */
  waiting: readonly number[]
  cached: number
}

function sampleBatch(
  model: Model,
  { stopIds, maxTokens, temperature, seed }: SampleAnswersOptions,
  first: number,
  prompts: readonly (readonly number[])[],
): number[][] {
  const longest = Math.max(...prompts.map(({ length }) => length)) + maxTokens
  const blocks = Math.ceil(longest / blockSize)
  const pages = new KVPages(model.config, prompts.length * blocks, blockSize, model.dtype)
  const all = prompts.map(
    (prompt, index): Running => ({
      index: first + index,
      pages: Array.from({ length: blocks }, (_, block) => index * blocks + block),
      answer: [],
      waiting: prompt,
      cached: 0,
    }),
  )
  try {
    let running = all
    for (let place = 0; place < maxTokens && running.length > 0; place++) {
      const tokens = nextTokens(model, pages, running, temperature, seed, place)
      running = running.filter((sequence, index) => {
        const token = tokens[index] ?? 0
        if (stopIds.includes(token)) return false
        sequence.answer.push(token)
        sequence.waiting = [token]
        return true
      })
    }
    return all.map(({ answer }) => answer)
  } finally {
    pages.dispose()
  }
}

function nextTokens(model: Model, pages: KVPages, running: readonly Running[], temperature: number, seed: number, place: number): number[] {
  return noGrad(() =>
    scope(() => {
      const sequences = running.map(({ waiting, cached, pages: own }) => ({ newTokens: waiting.length, cachedTokens: cached, pages: own }))
      const { hidden } = model.forward(
        running.flatMap(({ waiting }) => waiting),
        createPagedContext(pages, sequences),
      )
      const rows = hidden.dim(0)
      // Every row is sampled, and the last of each sequence is taken: a prompt is short.
      const seeds = new BigInt64Array(rows)
      const last: number[] = []
      let row = 0
      for (const sequence of running) {
        const { length } = sequence.waiting
        seeds.fill(BigInt(seed) * 1_000_003n + BigInt(sequence.index), row, row + length)
        row += length
        last.push(row - 1)
        sequence.cached += length
      }
      const { tokens } = sampleFromLogits(model.logits(hidden), {
        temperature: fromArray(model.dtype, [rows], new Array<number>(rows).fill(temperature)),
        seeds: fromArray('i64', [rows], seeds),
        positions: fromArray('i32', [rows], new Array<number>(rows).fill(place)),
      })
      const values = toArray(tokens) as Int32Array
      return last.map((index) => values[index] ?? 0)
    }),
  )
}
