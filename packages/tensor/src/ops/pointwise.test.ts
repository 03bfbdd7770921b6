import { afterEach, expect, test } from 'vitest'
import {
  add,
  addScaledInto,
  copyInto,
  elementary,
  fill,
  fromArray,
  liveTensors,
  record,
  scope,
  slice,
  toArray,
  transpose,
  zeros,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

test('arguments may have gaps; shapes must agree', () => {
  scope(() => {
    const x = fromArray('f32', [2, 2], [1, 2, 3, 4])
    expect([...toArray(add(transpose(x, 0, 1), x))]).toEqual([2, 5, 5, 8])
    expect(() => add(x, slice(x, 0, 0, 1))).toThrowError(
      expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path: 'pointwise.add.b' }),
    )
    const target = zeros('u8', [2, 3])
    copyInto(slice(target, 1, 1, 3), fromArray('u8', [2, 2], [1, 2, 3, 4]))
    expect([...toArray(target)]).toEqual([0, 1, 2, 0, 3, 4])
    fill(slice(x, 0, 0, 1), 10)
    addScaledInto(x, fromArray('f32', [2, 2], [1, 1, 2, 2]), 0)
    addScaledInto(x, fromArray('f32', [2, 2], [1, 1, 2, 2]), -0.5)
    expect([...toArray(x)]).toEqual([9.5, 9.5, 2, 3])
    expect(x.writes).toBe(3)
  })
})

test('elementary functions of any shape', () => {
  scope(() => {
    const x = fromArray('f64', [2, 1, 2], [0.5, 1, 2, 3])
    const known = { exp: Math.exp, log: Math.log, sin: Math.sin, cos: Math.cos, rsqrt: (value: number) => 1 / Math.sqrt(value) } as const
    for (const [name, of] of Object.entries(known))
      for (const [index, value] of [...toArray(elementary(name as keyof typeof known, x))].entries())
        expect(value).toBeCloseTo(of(Number(toArray(x)[index])), 12)
    expect(elementary('silu', x).shape).toEqual([2, 1, 2])
    expect(() => record((tape) => elementary('exp', tape.watch(x)))).toThrowError(expect.objectContaining({ path: 'elementary.x' }))
  })
})
