import { z } from 'zod'
import { defineEnvironment } from '../define/define-environment.ts'
import { createRandom, hashText, type Random } from '../reverse-text/random.ts'

/** Stands between words, and between the words and the answer. */
export const wordSeparator = ','
const answerSeparator = '='
/** One list of words in this many is held out. */
const heldOutShare = 8

const Args = z
  .strictObject({
    alphabet: z
      .string()
      .min(2)
      .refine((letters) => new Set(letters).size === [...letters].length, 'must have each letter once')
      .refine((letters) => !/[,=\s]/.test(letters), 'must have no comma, equals sign or space')
      .default('abcdefghijklmnop'),
    turns: z.int().min(1).default(3),
    min_words: z.int().min(1).default(1),
    max_words: z.int().min(1).default(2),
    min_length: z.int().min(1).default(1),
    max_length: z.int().min(1).default(3),
    /** `bare` for models that know nothing but the task, `english` for models that follow instructions. */
    style: z.enum(['bare', 'english']).default('bare'),
    /** Seed of the tasks in place of the run's. */
    seed: z.int().min(0).nullable().default(null),
    /** Tasks of the held-out split; null is endless. */
    eval_size: z.int().min(1).nullable().default(1024),
  })
  .superRefine(({ alphabet, turns, min_words, max_words, min_length, max_length }, context) => {
    const refuse = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message })
    if (min_words > max_words) refuse('max_words', 'must not be below min_words')
    if (min_length > max_length) refuse('max_length', 'must not be below min_length')
    // Words are drawn until one is new; with twice as many as are needed that ends soon.
    const letters = [...alphabet].length
    if (letters ** min_length < 2 * turns * max_words)
      refuse('alphabet', `has too few words of ${min_length} letters for ${turns * max_words} different ones`)
  })
export type AlphabetSortOptions = z.input<typeof Args>
type Options = z.output<typeof Args>

/** Words of each turn; the right answer of a turn is all words so far, sorted. */
export interface AlphabetSortTask {
  readonly id: string
  readonly words: readonly (readonly string[])[]
}

/** The task of this place: a function of split, seed and index alone. */
export function alphabetSortTask(
  split: 'train' | 'eval',
  seed: number,
  index: number,
  options: AlphabetSortOptions = {},
): AlphabetSortTask {
  const parsed = Args.parse(options)
  const random = createRandom(hashText(`alphabet-sort/${split}/${seed}/${index}`))
  // A list of the other split is drawn again: which split it is in is a property of its words.
  for (;;) {
    const words = drawWords(random, parsed)
    if (splitOf(words) === split) return { id: `${split}/${index}`, words }
  }
}

export function splitOf(words: AlphabetSortTask['words']): 'train' | 'eval' {
  return hashText(words.map((turn) => turn.join(wordSeparator)).join(answerSeparator)) % heldOutShare === 0 ? 'eval' : 'train'
}

/** All words up to this turn, in the order of their characters. */
export function sortedWords(words: AlphabetSortTask['words'], turn: number): string[] {
  return words
    .slice(0, turn + 1)
    .flat()
    .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
}

/** Share of words at their right place; words too many or too few count as wrong ones. */
export function wordsInPlace(answer: string, expected: readonly string[]): number {
  const given = answer.trim() === '' ? [] : answer.trim().split(wordSeparator)
  const right = expected.filter((word, place) => given[place]?.trim() === word).length
  return right / Math.max(expected.length, given.length)
}

function drawWords(random: Random, { alphabet, turns, min_words, max_words, min_length, max_length }: Options): string[][] {
  const letters = [...alphabet]
  const used = new Set<string>()
  const between = (low: number, high: number) => low + random.integer(high - low + 1)
  const drawWord = (): string => {
    for (;;) {
      const word = Array.from({ length: between(min_length, max_length) }, () => letters[random.integer(letters.length)] ?? '').join('')
      if (!used.has(word)) {
        used.add(word)
        return word
      }
    }
  }
  return Array.from({ length: turns }, () => Array.from({ length: between(min_words, max_words) }, drawWord))
}

/** What the user says in a turn. */
export function promptOf(words: readonly string[], turn: number, style: Options['style'] = 'bare'): string {
  const list = words.join(wordSeparator)
  if (style === 'bare') return list + answerSeparator
  return turn === 0
    ? `Sort these words by the alphabet and answer with nothing but the sorted list, words separated by commas: ${list}`
    : `Add these words, and answer with the whole sorted list again: ${list}`
}

/** Words come turn by turn, and each answer is the sorted list of all so far. The reward is the mean over turns; a turn that was not reached counts 0. */
export const alphabetSortEnvironment = defineEnvironment({
  name: 'alphabet-sort',
  args: Args,
  dataset: (args) => ({
    size: { train: null, eval: args.eval_size },
    task: ({ split, index, seed }) => alphabetSortTask(split, args.seed ?? seed, index, args),
  }),
  async *episode({ task, args }) {
    for (const [turn, words] of task.words.entries()) yield promptOf(words, turn, args.style)
  },
  score({ answers }, { task }) {
    const shares = task.words.map((_, turn) => wordsInPlace(answers[turn]?.text ?? '', sortedWords(task.words, turn)))
    const reward = shares.reduce((sum, share) => sum + share, 0) / shares.length
    return { reward, metrics: { exact: Number(shares.every((share) => share === 1)) } }
  },
})
