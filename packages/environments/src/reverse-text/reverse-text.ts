import { invariant } from '@trilithon/core'
import { createRandom, hashText, type Random } from './random.ts'

/** Letters of the task; the examples' character tokeniser has one token for each. */
export const reverseTextAlphabet = 'abcdefghijklmnop'
/** Stands between the letters and the answer. */
export const reverseTextSeparator = '='

export interface ReverseTextOptions {
  /** At least 16 letters, each once, none of them the separator. */
  readonly alphabet?: string
  readonly minLength?: number
  readonly maxLength?: number
}

/** One task: reverse `letters`. */
export interface ReverseTextTask {
  /** `train/17`, unique within a seed and a split. */
  readonly id: string
  readonly letters: string
  readonly prompt: string
  readonly answer: string
}

export type ReverseTextSplit = 'train' | 'held-out'

/** One text in this many is held out. */
const heldOutShare = 8

/** The prompt that a model answers with the letters in reverse. */
export function reverseTextPrompt(letters: string): string {
  return letters + reverseTextSeparator
}

/** The right answer. Letters are characters of Unicode, not halves of them. */
export function reverseText(letters: string): string {
  return [...letters].reverse().join('')
}

/** 2·LCS/(|a|+|b|) between the completion and the right answer, in 0 … 1: partial credit for letters in the right order. */
export function reverseTextReward(letters: string, completion: string): number {
  const a = [...completion]
  const b = [...reverseText(letters)]
  if (a.length + b.length === 0) return 1
  return (2 * longestCommonSubsequence(a, b)) / (a.length + b.length)
}

/** By dynamic programming over the shorter side, O(|a|·|b|) time, O(min) memory. */
export function longestCommonSubsequence(first: readonly string[], second: readonly string[]): number {
  const [a, b] = first.length < second.length ? [second, first] : [first, second]
  let above = new Uint32Array(b.length + 1)
  let row = new Uint32Array(b.length + 1)
  for (const letter of a) {
    for (let column = 1; column <= b.length; column++) {
      row[column] = letter === b[column - 1] ? (above[column - 1] ?? 0) + 1 : Math.max(above[column] ?? 0, row[column - 1] ?? 0)
    }
    ;[above, row] = [row, above]
  }
  return above[b.length] ?? 0
}

/** Whether a text is held out is a property of the text alone, so no seed of training ever meets a held-out one. */
export function splitOf(letters: string): ReverseTextSplit {
  return hashText(letters) % heldOutShare === 0 ? 'held-out' : 'train'
}

/** The task of this number under this seed; any of them can be made without those before it, so a position is a number. */
export function reverseTextTask(split: ReverseTextSplit, seed: number, index: number, options: ReverseTextOptions = {}): ReverseTextTask {
  const letters = drawLetters(createRandom(hashText(`${split}/${seed}/${index}`)), split, options)
  return { id: `${split}/${index}`, letters, prompt: reverseTextPrompt(letters), answer: reverseText(letters) }
}

/** A row for supervised training: the prompt, and an answer with noise. */
export interface ReverseTextRow {
  readonly prompt: string
  readonly completion: string
}

export interface ReverseTextRowsOptions extends ReverseTextOptions {
  readonly seed: number
  readonly count: number
  readonly split?: ReverseTextSplit
  /**
   * Chance that a letter of the answer is replaced by a random one (which may be the same). A model that starts RL from noisy answers has learned the
   * way and the length but is near uniform over letters; one that starts from clean answers explores too little.
   */
  readonly noise?: number
}

/** Rows for a warm start, reproducible by seed. */
export function reverseTextRows({ seed, count, split = 'train', noise = 0, ...options }: ReverseTextRowsOptions): ReverseTextRow[] {
  invariant(noise >= 0 && noise <= 1, `noise ${noise} is no chance`)
  const { alphabet } = checkedOptions(options)
  return Array.from({ length: count }, (_, index) => {
    const { prompt, answer } = reverseTextTask(split, seed, index, options)
    const random = createRandom(hashText(`noise/${split}/${seed}/${index}`))
    const completion = [...answer].map((letter) => (random.next() < noise ? draw(random, alphabet) : letter)).join('')
    return { prompt, completion }
  })
}

function drawLetters(random: Random, split: ReverseTextSplit, options: ReverseTextOptions): string {
  const { alphabet, minLength, maxLength } = checkedOptions(options)
  const length = minLength + random.integer(maxLength - minLength + 1)
  // The length is drawn once, so that neither split prefers one. A text of the other split is drawn again.
  for (;;) {
    const letters = Array.from({ length }, () => draw(random, alphabet)).join('')
    if (splitOf(letters) === split) return letters
  }
}

function draw(random: Random, alphabet: readonly string[]): string {
  return alphabet[random.integer(alphabet.length)] ?? ''
}

function checkedOptions({ alphabet = reverseTextAlphabet, minLength = 4, maxLength = 8 }: ReverseTextOptions) {
  const letters = [...alphabet]
  invariant(letters.length >= 16 && new Set(letters).size === letters.length, `the alphabet "${alphabet}" has not 16 different letters`)
  invariant(!letters.includes(reverseTextSeparator), `the alphabet holds the separator ${reverseTextSeparator}`)
  invariant(
    Number.isInteger(minLength) && minLength >= 1 && Number.isInteger(maxLength) && maxLength >= minLength,
    `no lengths from ${minLength} to ${maxLength}`,
  )
  return { alphabet: letters, minLength, maxLength }
}
