import type { Sample } from '@trilithon/core'
import { createPagedContext, KVPages, type Model } from '@trilithon/models'
import { fromArray, noGrad, sampleFromHidden, scope, toArray } from '@trilithon/tensor'

/** The weights that serve, and their number. */
export interface Policy {
  readonly model: Model
  readonly version: number
}

export interface SampleAnswersOptions {
  readonly prompts: readonly (readonly number[])[]
  /** Which policy serves the forward that chooses the token at this place of the answer; a later one goes on with the keys of those before it. */
  readonly policyAt: (place: number) => Policy
  readonly tokens: number
  readonly temperature: number
  readonly seed: number
  readonly stopId?: number
  readonly idOf: (index: number) => string
  readonly reward?: (prompt: readonly number[], answer: readonly number[]) => number
}

const blockSize = 4

interface Running {
  readonly prompt: readonly number[]
  readonly pages: readonly number[]
  readonly ids: number[]
  readonly logprobs: number[]
  readonly versions: number[]
  readonly contexts: number[]
  waiting: readonly number[]
  cached: number
  oldestKey: number
}

/**
 * What an engine does, in a few lines: pages of keys, a token at a time, the log-probability from the fused sampling op. Another path than the trainer's
 * packed forward with its own head.
 */
export function sampleAnswers(options: SampleAnswersOptions): Sample[] {
  const { prompts, policyAt, tokens, temperature, seed, stopId, idOf, reward } = options
  const { model: first } = policyAt(0)
  const blocks = Math.ceil((Math.max(...prompts.map(({ length }) => length)) + tokens) / blockSize)
  const pages = new KVPages(first.config, prompts.length * blocks, blockSize)
  const all = prompts.map(
    (prompt, index): Running => ({
      prompt,
      pages: Array.from({ length: blocks }, (_, block) => index * blocks + block),
      ids: [],
      logprobs: [],
      versions: [],
      contexts: [],
      waiting: prompt,
      cached: 0,
      oldestKey: Number.POSITIVE_INFINITY,
    }),
  )
  try {
    let running = all
    for (let place = 0; place < tokens && running.length > 0; place++) {
      const policy = policyAt(place)
      decode(policy.model, pages, running, temperature, seed, place).forEach(({ token, logprob }, index) => {
        const sequence = running[index] as Running
        sequence.oldestKey = Math.min(sequence.oldestKey, policy.version)
        sequence.ids.push(token)
        sequence.logprobs.push(logprob)
        sequence.versions.push(policy.version)
        sequence.contexts.push(sequence.oldestKey)
        sequence.cached += sequence.waiting.length
        sequence.waiting = [token]
      })
      running = running.filter(({ ids }) => ids.at(-1) !== stopId)
    }
  } finally {
    pages.dispose()
  }
  return all.map((sequence, index) => sampleOf(sequence, idOf(index), temperature, reward?.(sequence.prompt, sequence.ids) ?? null))
}

function sampleOf({ prompt, ids, logprobs, versions, contexts }: Running, id: string, temperature: number, reward: number | null): Sample {
  return {
    id,
    environment: 'letters',
    promptIds: Uint32Array.from(prompt),
    completionIds: Uint32Array.from(ids),
    mask: new Uint8Array(ids.length).fill(1),
    logprobs: Float32Array.from(logprobs),
    temperatures: new Float32Array(ids.length).fill(temperature),
    versions: Uint32Array.from(versions),
    contextVersionsMin: Uint32Array.from(contexts),
    advantage: (id.length % 2) - 0.5,
    reward,
    trainingMode: 'rl',
    profile: 'fp32',
  }
}

function decode(model: Model, pages: KVPages, running: readonly Running[], temperature: number, seed: number, place: number) {
  return noGrad(() =>
    scope(() => {
      const sequences = running.map(({ waiting, cached, pages: own }) => ({ newTokens: waiting.length, cachedTokens: cached, pages: own }))
      const { hidden } = model.forward(
        running.flatMap(({ waiting }) => waiting),
        createPagedContext(pages, sequences),
      )
      const rows = hidden.dim(0)
      const seeds = new BigInt64Array(rows)
      const last: number[] = []
      let row = 0
      for (const [index, { waiting }] of running.entries()) {
        seeds.fill(BigInt(seed) * 1_000_003n + BigInt(index), row, row + waiting.length)
        row += waiting.length
        last.push(row - 1)
      }
      const rules = {
        temperature: fromArray(model.dtype, [rows], new Array<number>(rows).fill(temperature)),
        seeds: fromArray('i64', [rows], seeds),
        positions: fromArray('i32', [rows], new Array<number>(rows).fill(place)),
      }
      const sampled = model.withHead(({ parameter }) => sampleFromHidden(hidden, parameter.value, rules))
      const [tokens, logprobs] = [toArray(sampled.tokens) as Int32Array, toArray(sampled.logprobs) as Float32Array]
      return last.map((index) => ({ token: tokens[index] ?? 0, logprob: logprobs[index] ?? 0 }))
    }),
  )
}
