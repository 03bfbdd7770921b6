import { afterEach, expect, test } from 'vitest'
import { empty, fromArray, keep, liveTensors, scope, type Tensor, toArray } from './index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const disposed = expect.objectContaining({ code: 'NATIVE_HANDLE_DISPOSED' })

test('a scope frees what was made inside, also in scopes within it', () => {
  let inner: Tensor | undefined
  scope(() => {
    inner = scope(() => empty('f32', [3]))
    expect(inner.isDisposed).toBe(false)
    expect(liveTensors().tensors).toBe(1)
  })
  expect(inner?.isDisposed).toBe(true)
  expect(() => toArray(inner as Tensor)).toThrowError(disposed)
})

test('what is returned passes outwards: from arrays, maps, sets and plain objects, also in circles', () => {
  const circle: { tensor?: Tensor; again?: unknown } = {}
  const result = scope(() => {
    empty('f32', [8])
    circle.tensor = empty('f32', [1])
    circle.again = circle
    return {
      list: [empty('f32', [1])],
      map: new Map([['a', empty('f32', [1])]]),
      set: new Set([empty('f32', [1])]),
      circle,
      text: 'text',
      none: null,
    }
  })
  expect(liveTensors().tensors).toBe(4)
  for (const tensor of [...result.list, ...result.map.values(), ...result.set, circle.tensor]) tensor?.dispose()
})

test('what is kept belongs to the caller, also when the scope throws', () => {
  let kept: Tensor | undefined
  expect(() =>
    scope(() => {
      empty('f32', [2])
      kept = keep(empty('f32', [2]))
      scope(() => {
        throw new Error('inside')
      })
    }),
  ).toThrowError('inside')
  expect(liveTensors().tensors).toBe(1)
  kept?.dispose()
})

test('a promise is refused and its tensors are freed', async () => {
  expect(() => scope(async () => empty('f32', [2]))).toThrowError(
    expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', details: expect.objectContaining({ op: 'scope', argument: 'body' }) }),
  )
  await Promise.resolve()
})

test('a tensor disposed by hand is not disposed again; by hand, a second time is an error', () => {
  scope(() => {
    const tensors = Array.from({ length: 5 }, () => empty('f32', [1]))
    tensors[1]?.dispose()
    tensors[4]?.dispose()
    expect(() => tensors[1]?.dispose()).toThrowError(disposed)
    expect(liveTensors().tensors).toBe(3)
  })
})

test('a view outlives the tensor it was made of', () => {
  const tail = scope(() => fromArray('f32', [3], [1, 2, 3]))
  expect([...toArray(tail)]).toEqual([1, 2, 3])
  tail.dispose()
})
