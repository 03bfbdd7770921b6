import assert from 'node:assert/strict'
import type { ParallelPlan, ParameterSpec } from '@trilithon/core'
import { describe, it } from 'vitest'
import { createAlone } from '../test/create-alone.ts'
import { fakeParameters } from '../test/fake-parameters.ts'
import { emptyPlan } from './empty-plan.ts'
import { oneDevice } from './one-device.ts'

const split: ParallelPlan = {
  ...emptyPlan(fakeParameters, 'fp32'),
  worldSize: 8,
  degrees: { dp_replicate: 1, fsdp: 4, ep: 2, cp: 2 },
  denseMesh: ['fsdp', 'cp'],
  sparseMesh: ['fsdp', 'ep'],
  placements: { 'layers.0.experts': [{ axis: 'ep', kind: 'shard', dim: 0 }] },
}

describe('one device', () => {
  const contribute = async (plan: ParallelPlan, parameters: readonly ParameterSpec[] = fakeParameters) =>
    (await createAlone(oneDevice)).contribute(plan, parameters)

  it('P1 names no axis', async () => {
    assert.deepEqual((await createAlone(oneDevice)).axes, [])
  })

  it('P2 changes neither argument and gives equal plans for equal arguments', async () => {
    const [plan, parameters] = [structuredClone(split), structuredClone(fakeParameters)]
    assert.deepEqual(await contribute(plan, parameters), await contribute(structuredClone(split)))
    assert.deepEqual([plan, parameters], [split, fakeParameters])
  })

  it('P3 leaves what other plugins planned as it is', async () => {
    assert.deepEqual(await contribute(split), split)
  })
})

describe('emptyPlan', () => {
  const plan = emptyPlan(fakeParameters, 'fp32')

  it('P4 places every parameter of the model, in order, and splits none', () => {
    assert.deepEqual(
      Object.entries(plan.placements),
      fakeParameters.map(({ name }) => [name, []]),
    )
  })

  it('gathers the parameters of a unit together, units and parameters in the order of the model', () => {
    assert.deepEqual(
      plan.gatheringUnits.map(({ name, parameters }) => [name, ...parameters]),
      [
        ['layers.0', 'layers.0.attention', 'layers.0.experts', 'layers.0.bias'],
        ['embedding', 'embed'],
      ],
    )
  })

  it('P5 survives JSON', () => {
    assert.deepEqual(JSON.parse(JSON.stringify(plan)), plan)
  })

  it('P6 has one rank, the product of its degrees', () => {
    assert.deepEqual([plan.worldSize, Object.values(plan.degrees), plan.denseMesh, plan.sparseMesh], [1, [1, 1, 1, 1], [], []])
  })

  it('takes a model without parameters', () => {
    assert.deepEqual([emptyPlan([], 'fp32').placements, emptyPlan([], 'fp32').gatheringUnits], [{}, []])
  })
})
