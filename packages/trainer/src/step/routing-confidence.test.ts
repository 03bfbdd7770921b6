import { expect, test } from 'vitest'
import { RoutingConfidence } from './routing-confidence.ts'

test('a mean over the tokens of all micro-batches, by layer and over layers', () => {
  const confidence = new RoutingConfidence()
  confidence.add(
    new Map([
      [1, 1.5],
      [4, 3],
    ]),
    3,
  )
  confidence.add(
    new Map([
      [1, 0.5],
      [4, 0],
    ]),
    1,
  )
  expect(confidence.values()).toEqual({
    'routing_confidence/layer_1': 0.5,
    'routing_confidence/layer_4': 0.75,
    'routing_confidence/mean': 0.625,
    'routing_confidence/min': 0.5,
    'routing_confidence/max': 0.75,
  })
})

test('a model without experts has none', () => {
  const confidence = new RoutingConfidence()
  confidence.add(new Map(), 7)
  expect(confidence.values()).toEqual({})
})
