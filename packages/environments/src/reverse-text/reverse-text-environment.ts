import { z } from 'zod'
import { defineEnvironment } from '../define/define-environment.ts'
import { reverseTextAlphabet, reverseTextReward, reverseTextSeparator, reverseTextTask } from './reverse-text.ts'

const Args = z
  .strictObject({
    alphabet: z
      .string()
      .refine(
        (letters) => [...letters].length >= 16 && new Set(letters).size === [...letters].length,
        'must have 16 different letters or more',
      )
      .refine((letters) => !letters.includes(reverseTextSeparator), `must not have the separator ${reverseTextSeparator}`)
      .default(reverseTextAlphabet),
    min_length: z.int().min(1).default(4),
    max_length: z.int().min(1).default(8),
    /** Seed of the tasks in place of the run's. */
    seed: z.int().min(0).nullable().default(null),
    /** Tasks of the held-out split; null is endless. */
    eval_size: z.int().min(1).nullable().default(1024),
  })
  .refine(({ min_length, max_length }) => min_length <= max_length, { path: ['max_length'], message: 'must not be below min_length' })

/** `abcd=` is answered by `dcba`: one turn, endless tasks. Those of an evaluation are held out by their letters, so no seed of training meets one. */
export const reverseTextEnvironment = defineEnvironment({
  name: 'reverse-text',
  args: Args,
  dataset: ({ seed: ownSeed, eval_size, alphabet, min_length: minLength, max_length: maxLength }) => ({
    size: { train: null, eval: eval_size },
    task: ({ split, index, seed }) =>
      reverseTextTask(split === 'train' ? 'train' : 'held-out', ownSeed ?? seed, index, { alphabet, minLength, maxLength }),
  }),
  episode: async ({ task, model }) => (await model.turn(task.prompt)).text,
  score({ answers }, { task }) {
    const text = answers[0]?.text ?? ''
    return { reward: reverseTextReward(task.letters, text), metrics: { exact: Number(text === task.answer) } }
  },
})
