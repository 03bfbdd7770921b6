import { TrilithonError } from '@trilithon/core'

/** A flag as a whole number from `least`. Throws `USAGE_INVALID`. */
export function wholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= least && text.trim() !== '') return value
  throw new TrilithonError('USAGE_INVALID', `${flag} is ${JSON.stringify(text)}`, {
    path: flag,
    hint: `Give a whole number from ${least}.`,
  })
}

/** The flag `--split`. Throws `USAGE_INVALID`. */
export function splitOf(text: string): 'train' | 'held-out' {
  if (text === 'train' || text === 'held-out') return text
  throw new TrilithonError('USAGE_INVALID', `there is no split ${JSON.stringify(text)}`, {
    path: '--split',
    hint: 'Splits: train, held-out.',
  })
}
