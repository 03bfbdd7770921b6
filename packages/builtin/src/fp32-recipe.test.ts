import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { createAlone, run } from '../test/create-alone.ts'
import { fakeParameters } from '../test/fake-parameters.ts'
import { fp32Recipe } from './fp32-recipe.ts'

const recipe = async () => (await createAlone(fp32Recipe)).recipe(fakeParameters)

describe('fp32 recipe', () => {
  it('Q1 gives equal recipes for equal parameters', async () => {
    assert.deepEqual(await recipe(), await recipe())
  })

  it('Q2 names every parameter and no other', async () => {
    const names = fakeParameters.map(({ name }) => name)
    const { parameters, serving } = await recipe()
    assert.deepEqual([Object.keys(parameters), Object.keys(serving)], [names, names])
  })

  it('Q3 has the profile fp32, and refuses another one in words', async () => {
    const precision = await createAlone(fp32Recipe)
    assert.deepEqual([precision.profile, precision.recipe([]).profile], ['fp32', 'fp32'])
    const problems = (numericsProfile: string) => [
      ...(fp32Recipe.check?.({ config: {}, run: { ...run, numericsProfile }, peer: () => undefined }) ?? []),
    ]
    assert.deepEqual(problems('fp32'), [])
    assert.deepEqual(problems('bf16'), [
      {
        message: 'The built-in precision computes under the numerics profile "fp32", the run asks for "bf16".',
        path: 'numerics_profile',
        hint: 'Set numerics_profile = "fp32".',
      },
    ])
  })

  it('Q4 survives JSON', async () => {
    const given = await recipe()
    assert.deepEqual(JSON.parse(JSON.stringify(given)), given)
  })

  it('Q5 serves what was trained with, and stores everything as float32', async () => {
    const { parameters, serving, master, activations, gradients, kv } = await recipe()
    assert.deepEqual(serving, parameters)
    const storages = [...Object.values(parameters), master, activations, gradients, kv]
    assert.deepEqual(new Set(storages.map(({ dtype }) => dtype)), new Set(['float32']))
  })
})
