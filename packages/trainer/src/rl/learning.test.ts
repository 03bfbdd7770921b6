import { rmSync } from 'node:fs'
import type { Sample } from '@trilithon/core'
import { expect, it } from 'vitest'
import { sampleAnswers } from './__fixtures__/sample-answers.ts'
import { makeTinyFolder, tinySetup } from './__fixtures__/tiny-run.ts'
import { createRlTrainer } from './create-rl-trainer.ts'
import type { RlEvent } from './rl-event.ts'

/** Tokens 4 to 7 are letters; 3 asks for the same letter twice. */
const prompts = Array.from({ length: 64 }, (_, index) => [4 + (index % 4), 3])
const rewardOf = ([letter]: readonly number[], answer: readonly number[]) => answer.filter((token) => token === letter).length / 2

/** Rewards by step of a whole loop: sample, compare with the mean of the same prompt, train. */
async function learn(lr: number, steps: number) {
  const folder = makeTinyFolder()
  const events: RlEvent[] = []
  const setup = tinySetup(folder, { max_steps: steps, ckpt: null, optim: { type: 'adamw', lr } })
  const trainer = await createRlTrainer({ setup, listener: (event) => void events.push(event) })
  const rewards: number[] = []
  try {
    while (!trainer.isFinished) {
      const { model, version } = trainer
      const samples = sampleAnswers({
        prompts,
        policyAt: () => ({ model, version }),
        tokens: 2,
        temperature: 1,
        seed: version,
        idOf: (index) => `${version}-${index}`,
        reward: rewardOf,
      })
      rewards.push(samples.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / samples.length)
      await trainer.step({ step: version, samples: withAdvantages(samples) })
    }
    const exact = events.flatMap((event) => (event.kind === 'step' ? [event.metrics['mismatch_kl/exact/max']] : []))
    return { rewards, exact }
  } finally {
    trainer.dispose()
    rmSync(folder, { recursive: true })
  }
}

function withAdvantages(samples: readonly Sample[]): Sample[] {
  const groupOf = (sample: Sample) => samples.filter(({ promptIds }) => promptIds[0] === sample.promptIds[0])
  return samples.map((sample) => {
    const group = groupOf(sample)
    const mean = group.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / group.length
    return { ...sample, advantage: (sample.reward ?? 0) - mean }
  })
}
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

it('the reward of samples rises, and every step agrees with its sampler; without a learning rate nothing rises', async () => {
  const { rewards, exact } = await learn(0.01, 60)
  expect(mean(rewards.slice(0, 5))).toBeLessThan(0.15)
  expect(mean(rewards.slice(-5))).toBeGreaterThan(0.55)
  expect(exact.every((difference) => difference === 0)).toBe(true)
  const still = await learn(0, 10)
  expect(Math.abs(mean(still.rewards.slice(-5)) - mean(still.rewards.slice(0, 5)))).toBeLessThan(0.1)
})
