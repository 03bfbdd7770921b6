import { type OpaquePayload, routedLayout, type Turn } from '@trilithon/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { buildSamples, findTurnFault } from './build-samples.ts'

const layout = routedLayout({ experts: 8, layers: 2, topK: 2 })
/** One row per letter: all of its bytes are the letter's code. */
const rows = (letters: string): OpaquePayload => ({
  data: Uint8Array.from([...letters].flatMap((letter) => new Array(layout.rowBytes).fill(letter.charCodeAt(0)))),
  shape: [letters.length, 2, 2],
  dtype: 'uint8',
})
const lettersOf = (payload: OpaquePayload | undefined) =>
  payload &&
  Array.from({ length: payload.shape[0] ?? 0 }, (_, row) => String.fromCharCode(payload.data[row * layout.rowBytes] ?? 0)).join('')

/** The keys that it read are a version older than what it sampled. */
function turn(prompt: readonly number[], completion: readonly number[], more: Partial<Turn> & { readonly version?: number } = {}): Turn {
  const { version = 1, ...given } = more
  return {
    promptIds: Uint32Array.from(prompt),
    completionIds: Uint32Array.from(completion),
    logprobs: Float32Array.from(completion, (id) => -id / 8),
    versions: new Uint32Array(completion.length).fill(version),
    contextVersionsMin: new Uint32Array(completion.length).fill(version - 1),
    temperature: 1,
    finishReason: 'stop',
    ...given,
  }
}
const plain = ({ promptIds, completionIds, mask }: ReturnType<typeof buildSamples>[number]) => ({
  prompt: [...promptIds],
  completion: [...completionIds],
  mask: [...mask].join(''),
})

describe('merging turns', () => {
  it('one turn is one sample', () => {
    expect(buildSamples([turn([1, 2], [3])]).map(plain)).toEqual([{ prompt: [1, 2], completion: [3], mask: '1' }])
  })

  it('a turn that extends the last one goes on with its sample', () => {
    const [sample, ...others] = buildSamples([
      turn([1, 2], [3, 4], { version: 5 }),
      turn([1, 2, 3, 4, 5, 6], [7, 8], { version: 6, temperature: 2 }),
    ])
    expect(others).toEqual([])
    expect(sample && plain(sample)).toEqual({ prompt: [1, 2], completion: [3, 4, 5, 6, 7, 8], mask: '110011' })
    expect([...(sample?.logprobs ?? [])]).toEqual([-3 / 8, -4 / 8, 0, 0, -7 / 8, -1])
    expect([...(sample?.temperatures ?? [])]).toEqual([1, 1, 2, 2, 2, 2])
    expect([...(sample?.versions ?? [])]).toEqual([5, 5, 6, 6, 6, 6])
    expect([...(sample?.contextVersionsMin ?? [])]).toEqual([4, 4, 5, 5, 5, 5])
    expect(sample?.oldest).toBe(5)
  })

  it('a turn that breaks the extension opens a sample', () => {
    expect(buildSamples([turn([1, 2], [3, 4]), turn([1, 2, 9, 4, 5], [7])]).map(plain)).toEqual([
      { prompt: [1, 2], completion: [3, 4], mask: '11' },
      { prompt: [1, 2, 9, 4, 5], completion: [7], mask: '1' },
    ])
  })

  it('agents that take turns separate by themselves', () => {
    const samples = buildSamples([turn([1], [2]), turn([9], [8]), turn([1, 2, 3], [4]), turn([9, 8, 7], [6])])
    expect(samples.map(plain)).toEqual([
      { prompt: [1], completion: [2, 3, 4], mask: '101' },
      { prompt: [9], completion: [8, 7, 6], mask: '101' },
    ])
  })

  it('of several samples the longest is extended', () => {
    const samples = buildSamples([turn([1], [2]), turn([1, 2, 5], [6]), turn([1], [2, 5]), turn([1, 2, 5, 6, 7], [8])])
    expect(samples.map(plain)).toEqual([
      { prompt: [1], completion: [2, 5, 6, 7, 8], mask: '10101' },
      { prompt: [1], completion: [2, 5], mask: '11' },
    ])
  })

  it('trains every sampled token once, with what was sampled, whatever the turns', () => {
    const step = fc.record({
      keep: fc.nat(12),
      news: fc.array(fc.nat(3), { maxLength: 3 }),
      said: fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }),
    })
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 7 }), (steps) => {
        let tokens: number[] = [0]
        let clock = 0
        const turns = steps.map(({ keep, news, said }) => {
          // Mostly the whole history; sometimes less of it.
          const prompt = [...(keep < 9 ? tokens : tokens.slice(0, keep - 8)), ...news]
          tokens = [...prompt, ...said]
          const first = clock + 1
          const logprobs = Float32Array.from(said, () => -++clock)
          // Numbers that tell which token they belong to, and no two of them equal.
          const versions = Uint32Array.from(said, (_, index) => 1000 + first + index)
          return turn(prompt, said, { logprobs, versions, contextVersionsMin: versions.map((version) => version - 500) })
        })
        const samples = buildSamples(turns)
        for (const { mask, logprobs, versions, contextVersionsMin, oldest } of samples) {
          const own = [...logprobs.keys()].filter((index) => mask[index] === 1)
          expect(own.map((index) => versions[index])).toEqual(own.map((index) => 1000 - (logprobs[index] ?? 0)))
          expect(own.map((index) => contextVersionsMin[index])).toEqual(own.map((index) => 500 - (logprobs[index] ?? 0)))
          expect(oldest).toBe(Math.min(...own.map((index) => versions[index] ?? 0)))
        }
        const trained = samples.flatMap(({ logprobs, mask }) => [...logprobs].filter((_, index) => mask[index] === 1))
        expect(trained.sort((one, other) => other - one)).toEqual(Array.from({ length: clock }, (_, index) => -index - 1))
        for (const sample of samples) {
          const whole = [...sample.promptIds, ...sample.completionIds]
          expect(turns.some(({ promptIds, completionIds }) => String([...promptIds, ...completionIds]) === String(whole))).toBe(true)
        }
      }),
    )
  })
})

describe('routed experts', () => {
  it('of one turn are carried by reference', () => {
    const payload = rows('abc')
    expect(buildSamples([turn([1, 2], [3, 4], { routedExperts: payload })])[0]?.routedExperts).toBe(payload)
  })

  it('of later turns add their new rows', () => {
    const whole = [
      turn([1, 2], [3, 4], { routedExperts: rows('abc') }),
      turn([1, 2, 3, 4, 5, 6], [7, 8], { routedExperts: rows('xyzdefg') }),
    ]
    expect(lettersOf(buildSamples(whole)[0]?.routedExperts)).toBe('abcdefg')
    // The same from an engine that was asked for the rows from token 3 on.
    const suffix = [whole[0] as Turn, turn([1, 2, 3, 4, 5, 6], [7, 8], { routedExperts: rows('defg') })]
    expect(lettersOf(buildSamples(suffix)[0]?.routedExperts)).toBe('abcdefg')
  })

  it('of a branch take the rows of the tokens that it shares', () => {
    // The second turn drops the last token of the first, and reports rows from token 2 on.
    const branch = buildSamples([turn([1, 2], [3, 4], { routedExperts: rows('abc') }), turn([1, 2, 9], [7], { routedExperts: rows('d') })])
    expect(branch.map(({ routedExperts }) => lettersOf(routedExperts))).toEqual(['abc', 'abd'])
  })

  it('that nobody knows are missing, never expert 0', () => {
    const [sample] = buildSamples([turn([1, 2, 9], [7], { routedExperts: rows('d') })])
    expect(lettersOf(sample?.routedExperts)).toBe('\xff\xffd')
  })

  it('are left out where one turn has none', () => {
    expect(buildSamples([turn([1], [2], { routedExperts: rows('a') }), turn([1, 2, 3], [4])])[0]?.routedExperts).toBeUndefined()
  })
})

describe('a turn', () => {
  it.each([
    ['too few versions', turn([1], [2], { versions: new Uint32Array() }), /versions has 0 entries for 1 tokens/],
    ['an empty prompt', turn([], [2]), /its prompt is empty/],
    ['a log-probability that is none', turn([1], [2], { logprobs: Float32Array.of(Number.NaN) }), /token 0 is NaN/],
    ['no temperature', turn([1], [2], { temperature: 0 }), /temperature is 0/],
  ])('with %s is not trained on', (_, wrong, message) => expect(findTurnFault(wrong)).toMatch(message))
  it('that is sound is', () => expect(findTurnFault(turn([1], [2]))).toBeUndefined())
})
