/** What the engine reports of a token has the bits of the trainer's packed forward: here in one process, in `other-process.test.ts` in two. */

import { someIds, tinyFamilies } from '@trilithon/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { createEngine } from '../src/engine/create-engine.ts'
import { bitsOf, generate, requestOf, rowsOf } from './running.ts'
import { packedScores, TestFolders, tinyModel } from './tiny-models.ts'

const folders = new TestFolders()
afterAll(() => folders.remove())

describe.each(tinyFamilies)('%s', (family) => {
  test.for([
    { title: 'prompts at once', prefillTokens: 512, kvBytes: null },
    { title: 'prompts in pieces of 5', prefillTokens: 5, kvBytes: null },
  ])('$title', async ({ prefillTokens }) => {
    const engine = await createEngine({
      modelFolder: folders.model(family, 3),
      thread: 'here',
      prefillTokens,
      blockSize: 4,
      routedExperts: true,
      maxModelLen: 96,
    })
    const model = tinyModel(family, 3)
    const prompts = [1, 2, 3, 7, 16, 33].map((length, index) => someIds(length, 61, index + 5))
    const answers = await Promise.all(
      prompts.map((prompt, index) =>
        generate(
          engine,
          requestOf(prompt, {
            routedExpertsFrom: 0,
            sampling: { seed: BigInt(index), maxTokens: 5 + index, temperature: index % 3 === 0 ? 0 : 0.5 + index / 4 },
          }),
        ),
      ),
    )
    for (const [index, answer] of answers.entries()) {
      const prompt = prompts[index] as number[]
      const { logprobs, routes } = packedScores(model, [...prompt, ...answer.tokens], index % 3 === 0 ? 0 : 0.5 + index / 4)
      expect(answer.kinds.at(0)).toBe('prompt')
      expect(answer.tokens.length).toBe(5 + index)
      expect(bitsOf(answer.logprobs)).toEqual(bitsOf(logprobs.slice(prompt.length - 1)))
      if (routes !== null) {
        const rows = prompt.length + answer.tokens.length - 1
        expect(answer.end?.routedExperts?.shape[0]).toBe(rows)
        expect(rowsOf(answer.end?.routedExperts ?? null)).toEqual([...routes.data.subarray(0, answer.end?.routedExperts?.data.length)])
      } else expect(answer.end?.routedExperts).toBeNull()
    }
    model.dispose()
    await engine.dispose()
  })
})
