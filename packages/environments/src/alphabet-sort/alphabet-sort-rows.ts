import { createRandom, hashText, type Random } from '../reverse-text/random.ts'
import type { ChatMessage } from '../turn-renderer.ts'
import { type AlphabetSortOptions, alphabetSortTask, promptOf, wordSeparator } from './alphabet-sort.ts'

/** A row for supervised training: a whole conversation. */
export interface AlphabetSortRow {
  readonly messages: readonly ChatMessage[]
}

export interface AlphabetSortRowsOptions {
  readonly seed: number
  readonly count: number
  readonly split?: 'train' | 'eval'
  /** Arguments of the environment. */
  readonly args?: AlphabetSortOptions
}

/**
 * Rows for a warm start, reproducible by seed: each answer has all words so far, in an order that is drawn at random. Who learns from them knows how to answer, and nothing of
 * the alphabet: the order is left to the reward.
 */
export function alphabetSortRows({ seed, count, split = 'train', args = {} }: AlphabetSortRowsOptions): AlphabetSortRow[] {
  return Array.from({ length: count }, (_, index) => {
    const { words } = alphabetSortTask(split, args.seed ?? seed, index, args)
    const random = createRandom(hashText(`alphabet-sort/order/${split}/${seed}/${index}`))
    const messages = words.flatMap((added, turn): ChatMessage[] => [
      { role: 'user', content: promptOf(added, turn, args.style) },
      { role: 'assistant', content: shuffled(words.slice(0, turn + 1).flat(), random).join(wordSeparator) },
    ])
    return { messages }
  })
}

/** By Fisher and Yates: every order is as likely as any other. */
function shuffled(words: readonly string[], random: Random): string[] {
  const order = [...words]
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = random.integer(last + 1)
    ;[order[last], order[chosen]] = [order[chosen] ?? '', order[last] ?? '']
  }
  return order
}
