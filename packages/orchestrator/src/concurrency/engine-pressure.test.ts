import { expect, it } from 'vitest'
import type { EngineLoad } from '../fleet/engine-admin.ts'
import { AimdLimit } from './aimd-limit.ts'
import { EnginePressure } from './engine-pressure.ts'

const idle: EngineLoad = { running: 50, waiting: 0, kvUsage: 0.5, prefixQueries: 0, prefixHits: 0, generatedTokens: 0, preemptions: 7 }

/** A limit of 100 under which 100 are in flight and more are refused, as its engines see it. */
function pressed() {
  const limit = new AimdLimit({ initial: 100, min: 4, max: 200, step: 10 })
  const pressure = new EnginePressure(limit, 0.9)
  const look = (load: Partial<EngineLoad>, inFlight = 100) => {
    limit.admits(inFlight, 4)
    limit.admits(limit.value, 4)
    return [pressure.looked([{ ...idle, ...load }], inFlight), limit.value]
  }
  return { pressure, look }
}

it('is cut for a queue at two looks in a row, and not for one', () => {
  const { look } = pressed()
  expect(look({ waiting: 10 })).toEqual([undefined, 100])
  expect(look({})).toEqual([undefined, 100])
  expect(look({ waiting: 10 })).toEqual([undefined, 100])
  expect(look({ waiting: 10 })).toEqual(['queued', 80])
})

it('is cut for full KV, less than for preempted requests', () => {
  expect(pressed().look({ kvUsage: 0.9 })).toEqual(['kv_full', 90])
  const { look } = pressed()
  // What was counted before the run is no sign.
  expect(look({})).toEqual([undefined, 100])
  expect(look({ preemptions: 8 })).toEqual(['preempted', 80])
})

it('is not cut again before what is in flight has come down to it', () => {
  const { look } = pressed()
  look({})
  expect(look({ preemptions: 8 })).toEqual(['preempted', 80])
  expect(look({ preemptions: 9 }, 95)).toEqual([undefined, 80])
  expect(look({ preemptions: 10 }, 80)).toEqual([undefined, 80])
  expect(look({ preemptions: 11 }, 80)).toEqual(['preempted', 64])
})

it('grows once a batch where there is room, and not near the limit on KV', () => {
  const { look, pressure } = pressed()
  look({})
  look({ preemptions: 8 })
  look({ preemptions: 8 }, 80)
  expect(look({ preemptions: 8 }, 80)).toEqual([undefined, 80])
  pressure.shipped()
  expect(look({ preemptions: 8, kvUsage: 0.85 }, 80)).toEqual([undefined, 80])
  expect(look({ preemptions: 8 }, 80)).toEqual(['free', 90])
  expect(look({ preemptions: 8 }, 90)).toEqual([undefined, 90])
})

it('takes no engine that came back for one that preempted', () => {
  const limit = new AimdLimit({ initial: 100, min: 4, max: 200, step: 10 })
  const pressure = new EnginePressure(limit, 0.9)
  pressure.looked([idle], 10)
  expect(pressure.looked([idle, idle], 10)).toBeUndefined()
  expect(limit.value).toBe(100)
})
