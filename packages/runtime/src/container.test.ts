import { type Disposable, defineSeam, TrilithonError } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { createRunContainer } from './container.ts'

interface Thing extends Disposable {
  readonly name: string
}
const One = defineSeam<Thing>({ id: 'one', version: 1, cardinality: 'one', thread: 'main', runsIn: ['trainer'] })
const Many = defineSeam<Thing, 'many'>({ id: 'many', version: 1, cardinality: 'many', thread: 'main', runsIn: ['trainer'] })

const code = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    if (TrilithonError.is(error)) return error.code
    throw error
  }
  return undefined
}

describe('createRunContainer', () => {
  const order: string[] = []
  const thing = (name: string, fail = false): Thing => ({
    name,
    dispose: async () => {
      order.push(name)
      if (fail) throw new Error(`${name} stuck`)
    },
  })

  it('finds by seam, keeps many in order, and refuses a second filling of a seam of one', () => {
    const container = createRunContainer()
    expect(container.find(One)).toBeUndefined()
    expect(container.all(Many)).toEqual([])
    expect(code(() => container.resolve(One))).toBe('SEAM_UNFILLED')
    container.add(One, thing('a'), 'p')
    container.add(Many, thing('b'), 'p')
    container.add(Many, thing('c'), 'q')
    expect(container.resolve(One).name).toBe('a')
    expect(container.all(Many).map(({ name }) => name)).toEqual(['b', 'c'])
    expect(code(() => container.add(One, thing('d'), 'q'))).toBe('SEAM_CONFLICT')
  })

  it('keeps runs apart', () => {
    const first = createRunContainer()
    first.add(One, thing('a'), 'p')
    expect(createRunContainer().find(One)).toBeUndefined()
  })

  it('disposes newest first, once, all of them, and reports what failed', async () => {
    const container = createRunContainer()
    for (const name of ['a', 'b', 'c']) container.add(Many, thing(name, name === 'b'), `plugin-${name}`)
    order.length = 0
    const [first, second] = await Promise.allSettled([container.dispose(), container.dispose()])
    expect(order).toEqual(['c', 'b', 'a'])
    for (const outcome of [first, second]) expect(outcome).toMatchObject({ reason: { code: 'PLUGIN_FAILED', path: 'plugin-b' } })
  })
})
