import { TrilithonError } from '@trilithon/core'
import fc from 'fast-check'

/** Environment variable that repeats a random test: the seed that its failure printed. */
export const seedVariable = 'TRILITHON_TEST_SEED'

/** Tries `check` on `runs` random values; a failure is shrunk and says how to repeat it. */
export async function assertProperty<T>(values: fc.Arbitrary<T>, check: (value: T) => Promise<void>, runs: number): Promise<void> {
  const seed = givenSeed() ?? Math.trunc(Math.random() * 0x7fffffff)
  const details = await fc.check(fc.asyncProperty(values, check), { seed, numRuns: runs })
  if (!details.failed) return
  const message = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance)
  throw new Error(`${message}\nafter ${fc.stringify(details.counterexample)}\nRepeat with ${seedVariable}=${seed}`, {
    cause: details.errorInstance,
  })
}

function givenSeed(): number | undefined {
  const text = process.env[seedVariable]
  if (text === undefined || text === '') return undefined
  const seed = Number(text)
  if (Number.isInteger(seed) && Math.abs(seed) <= 0x7fffffff) return seed
  throw new TrilithonError('USAGE_INVALID', `A seed is a whole number of 32 bits, not "${text}".`, {
    source: { kind: 'environment', variable: seedVariable },
    hint: 'Copy the seed that the failed test printed.',
  })
}
