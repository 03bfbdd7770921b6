import assert from 'node:assert/strict'
import { missingRows, routedLayout, TrilithonError } from '@trilithon/core'
import { describe, it } from 'vitest'
import { createAlone } from '../test/create-alone.ts'
import { refusingReplay } from './refusing-replay.ts'

const refusal = (error: unknown) => {
  assert.ok(TrilithonError.is(error, 'REPLAY_REFUSED'))
  assert.deepEqual([error.hint, error.exitStatus], ['Run: pnpm add @trilithon/r3-replay', 3])
  return true
}

describe('refusing replay', () => {
  const shape = { experts: 64, layers: 2, topK: 4 }
  const payload = missingRows(routedLayout(shape), 3)

  it('Y1 refuses to start, and says what to install', async () => {
    await assert.rejects((await createAlone(refusingReplay)).start(shape), refusal)
  })

  it('Y5 refuses payloads, before a start and after the refused one', async () => {
    const replay = await createAlone(refusingReplay)
    for (let times = 0; times < 2; times++) {
      assert.throws(() => replay.accept(payload, 3), refusal)
      assert.throws(() => replay.join([payload]), refusal)
      await assert.rejects(replay.start(shape), refusal)
    }
  })
})
