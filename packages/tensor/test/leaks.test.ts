/** A step leaves nothing behind: neither one that ends well, nor one that fails at any point. */
import { expect, test } from 'vitest'
import { checkpoint, fromArray, liveTensors, normal, Parameter, record, rmsNorm, scope, slice, swiglu, type Tensor } from '../src/index.ts'

const weight = new Parameter({ name: 'weight', shape: [8], initialiser: normal(1) })

function step(breakAt = Number.POSITIVE_INFINITY): void {
  let op = 0
  const counted = <T>(value: T): T => {
    if (op++ === breakAt) throw new Error('broken')
    return value
  }
  scope(() =>
    record((tape) => {
      const x = counted(fromArray('f32', [4, 8], new Float32Array(32).fill(0.5)))
      const layer = (input: Tensor) =>
        scope(() => counted(swiglu(counted(rmsNorm(input, weight.value, 1e-5)), counted(slice(input, 0, 0, 4)))))
      const output = counted(
        layer(
          checkpoint(
            layer,
            checkpoint((input) => scope(() => layer(layer(input))), layer(x)),
          ),
        ),
      )
      tape.backward([{ output, gradient: counted(fromArray('f32', [4, 8], new Float32Array(32).fill(1))) }])
    }),
  )
  weight.zeroGradient()
}

test('200 steps take no more tensors and no more bytes than one', () => {
  weight.initialise(0)
  step()
  const { tensors, bytes, peakBytes } = liveTensors()
  for (let i = 0; i < 200; i++) step()
  expect(liveTensors()).toEqual({ tensors, bytes, peakBytes })
  weight.dispose()
  expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 })
})

test('a step that breaks at any point, in the forward or in a recomputation, leaves nothing', () => {
  weight.initialise(0)
  const before = liveTensors()
  let broken = 0
  for (let breakAt = 0; ; breakAt++) {
    try {
      step(breakAt)
      break
    } catch (error) {
      expect(error).toEqual(new Error('broken'))
      broken++
    }
    weight.zeroGradient()
    expect(liveTensors()).toMatchObject({ tensors: before.tensors, bytes: before.bytes })
  }
  // Three calls a layer, five layers, four of them again in the backward and two of those twice; and three others.
  expect(broken).toBeGreaterThan(25)
  weight.dispose()
})
