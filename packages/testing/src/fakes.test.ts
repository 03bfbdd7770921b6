import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { fakeFleet, fakeRequest } from './fake-fleet.ts'
import { fakeBlock, fakeExperts, fakeKey } from './fake-kv-block.ts'
import { hasCode } from './has-code.ts'
import { manualClock } from './manual-clock.ts'
import { recordingLogger } from './recording-logger.ts'

describe('fakes', () => {
  it('manualClock moves when told, and only forward', () => {
    const clock = manualClock(5)
    clock.advance(10)
    assert.equal(clock.nowMs(), 15)
    assert.throws(() => clock.advance(-1), hasCode('INVARIANT_BROKEN'))
  })

  it('fakeFleet is a live view that a test changes', () => {
    const clock = manualClock()
    const fleet = fakeFleet(['a', 'b'], clock)
    clock.advance(7)
    assert.equal(fleet.nowMs(), 7)
    fleet.set('a', { state: 'paused' })
    fleet.set('a', { reportedRequests: 3 })
    fleet.remove('b')
    fleet.remove('never there')
    const [worker, ...others] = fleet.workers()
    assert.deepEqual([worker?.id, worker?.state, worker?.reportedRequests, worker?.role, others.length], ['a', 'paused', 3, 'both', 0])
  })

  it('fakeRequest takes what it is given', () => {
    assert.deepEqual({ ...fakeRequest(), needs: ['x'] }, fakeRequest({ needs: ['x'] }))
  })

  it('fakeKey and fakeBlock depend on their arguments alone', () => {
    assert.deepEqual(fakeKey('a', { salt: 's' }), { ...fakeKey('a'), salt: 's' })
    assert.notDeepEqual(fakeKey('a').hash, fakeKey('b').hash)
    assert.deepEqual(fakeBlock(1), fakeBlock(1))
    assert.notEqual(fakeBlock(1).checksum, fakeBlock(2).checksum)
    assert.notEqual(fakeBlock(1, 64, { experts: fakeExperts(1, 4) }).checksum, fakeBlock(1).checksum)
    assert.equal(fakeExperts(1, 3, 'uint16').data.length, 3 * 2 * 2 * 2)
  })

  it('recordingLogger keeps lines of itself and of its children, with their fields', () => {
    const log = recordingLogger()
    log.info('started', { port: 1 })
    log.child({ worker: 'a' }).child({ turn: 2 }).warn('slow', { ms: 9 })
    log.child({ worker: 'b' }).debug('idle')
    log.error('lost')
    assert.deepEqual(log.lines, [
      { level: 'info', message: 'started', fields: { port: 1 } },
      { level: 'warn', message: 'slow', fields: { worker: 'a', turn: 2, ms: 9 } },
      { level: 'debug', message: 'idle', fields: { worker: 'b' } },
      { level: 'error', message: 'lost', fields: {} },
    ])
  })
})
