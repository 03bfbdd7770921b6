import type { EpisodeResult } from '@trilithon/environments'
import { describe, expect, it } from 'vitest'
import type { GroupPlan } from './group-plan.ts'
import { type Flight, RunningGroup } from './running-group.ts'

const group = () => new RunningGroup({ id: 'g', kind: 'train', size: 4 } as GroupPlan)
const flight = (of: RunningGroup, version: number, sampled = Number.POSITIVE_INFINITY) => {
  const made = { group: of, indices: [0], version, sampled } as unknown as Flight
  of.flights.add(made)
  return made
}
const result = (versions: readonly number[], error?: EpisodeResult['error']) =>
  ({ turns: [{ versions: Uint32Array.from(versions) }], ...(error === undefined ? {} : { error }) }) as unknown as EpisodeResult

describe('the age of a group', () => {
  it('is none before anything was started', () => expect(group().oldest).toBe(Number.POSITIVE_INFINITY))

  it('is that of an episode which has sampled nothing yet: what serves now may answer it', () => {
    const one = group()
    flight(one, 3)
    expect(one.oldest).toBe(3)
  })

  it('is that of its first token where one was sampled, however long before that it was started', () => {
    const one = group()
    flight(one, 3, 5)
    expect(one.oldest).toBe(5)
    flight(one, 4)
    expect(one.oldest).toBe(4)
  })

  it('goes on with what has finished, because it is trained with the others', () => {
    const one = group()
    const running = flight(one, 7)
    one.arrive(result([6, 2, 6]))
    expect(one.oldest).toBe(2)
    one.flights.delete(running)
    expect(one.oldest).toBe(2)
  })

  it('is not that of an episode that failed, which is not trained', () => {
    const one = group()
    flight(one, 7)
    one.arrive(result([1], { type: 'Boom', message: 'no' }))
    expect([one.oldest, one.failed, one.arrived]).toEqual([7, 1, 1])
  })
})
