import { EventEmitter } from 'node:events'
import { silentLogger, TrilithonError } from '@trilithon/core'
import { describe, expect, it, vi } from 'vitest'
import { type LifecycleContext, type ProcessEvents, runLifecycle } from './lifecycle.ts'

class FakeProcess extends EventEmitter implements ProcessEvents {
  exits: number[] = []
  exit(status: number) {
    this.exits.push(status)
  }
}

const start = (body: (context: LifecycleContext) => Promise<void>, events = new FakeProcess(), disposeTimeoutMs = 1000) => ({
  events,
  result: runLifecycle(body, { log: silentLogger, events, disposeTimeoutMs }),
})
const untilAborted = ({ signal }: LifecycleContext) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))

describe('runLifecycle', () => {
  it('ends with 0 and disposes newest first, whatever each does', async () => {
    const order: string[] = []
    const { result, events } = start(async ({ onDispose }) => {
      onDispose('first', async () => void order.push('first'))
      onDispose('second', async () => void order.push('second'))
    })
    expect(await result).toEqual({ status: 0 })
    expect(order).toEqual(['second', 'first'])
    expect(events.eventNames()).toEqual([])
  })

  it('reports a failing disposal and still disposes of the rest', async () => {
    const order: string[] = []
    const { result } = start(async ({ onDispose }) => {
      onDispose('first', async () => void order.push('first'))
      onDispose('second', () => Promise.reject(new Error('stuck')))
    })
    expect(await result).toMatchObject({ status: 1, error: { code: 'TASK_FAILED', message: 'disposing of second failed: stuck' } })
    expect(order).toEqual(['first'])
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('ends in order by %s with 130, and at once by a second', async (signal) => {
    let disposed = false
    const { events, result } = start(async (context) => {
      context.onDispose('x', async () => {
        disposed = true
        events.emit(signal, signal)
      })
      setTimeout(() => events.emit(signal, signal), 5)
      await untilAborted(context)
    })
    expect(await result).toEqual({ status: 130 })
    expect(disposed).toBe(true)
    expect(events.exits).toEqual([130])
  })

  it('disposes of what a body that was in the middle of its start makes after a signal', async () => {
    const order: string[] = []
    let finishStart: () => void = () => undefined
    const { events, result } = start(async ({ onDispose }) => {
      onDispose('early', async () => void order.push('early'))
      await new Promise<void>((resolve) => {
        finishStart = resolve
        setTimeout(() => events.emit('SIGINT', 'SIGINT'), 1)
      })
      onDispose('late', async () => void order.push('late'))
      onDispose('late and failing', () => Promise.reject(new Error('stuck')))
    })
    expect(await result).toEqual({ status: 130 })
    expect(order).toEqual(['early'])
    finishStart()
    await vi.waitFor(() => expect(order).toEqual(['early', 'late']))
  })

  it('ends in order when its launcher has gone, and only where it has one', async () => {
    const run = (isLaunched: boolean) => {
      const events = new FakeProcess()
      const result = runLifecycle(untilAborted, { log: silentLogger, events, isLaunched })
      return { events, result }
    }
    const launched = run(true)
    launched.events.emit('disconnect')
    expect(await launched.result).toEqual({ status: 130 })
    expect([launched.events.eventNames(), launched.events.exits]).toEqual([[], []])
    const alone = run(false)
    expect(alone.events.listenerCount('disconnect')).toBe(0)
    alone.events.emit('SIGTERM', 'SIGTERM')
    await alone.result
  })

  it('ends at last when its launcher has gone, even where disposal hangs', async () => {
    vi.useFakeTimers()
    try {
      const events = new FakeProcess()
      const hanging = async ({ onDispose }: LifecycleContext) => onDispose('x', () => new Promise(() => undefined))
      const result = runLifecycle(hanging, { log: silentLogger, events, isLaunched: true, disposeTimeoutMs: 60_000 })
      events.emit('disconnect')
      await vi.advanceTimersByTimeAsync(10_000)
      expect(events.exits).toEqual([1])
      await vi.advanceTimersByTimeAsync(60_000)
      await result
    } finally {
      vi.useRealTimers()
    }
  })

  it('ends by a failed background task with its cause, even when the body does not listen', async () => {
    const cause = new Error('disk full')
    const { result } = start(async ({ background }) => {
      background('the checkpoint writer', async () => {
        throw cause
      })
      await new Promise(() => undefined)
    })
    const { status, error } = await result
    expect(status).toBe(1)
    expect(error).toMatchObject({ code: 'TASK_FAILED', message: 'the checkpoint writer failed: disk full', cause })
  })

  it('keeps the first failure when others follow from it', async () => {
    const { result } = start(async (context) => {
      context.background('b', async (signal) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        throw new Error('consequence')
      })
      context.background('a', () => Promise.reject(new Error('first')))
      await untilAborted(context)
      throw new Error('another consequence')
    })
    expect((await result).error?.message).toBe('a failed: first')
  })

  it('ends by a stray rejection or exception', async () => {
    for (const event of ['unhandledRejection', 'uncaughtException']) {
      const { events, result } = start(untilAborted)
      setTimeout(() => events.emit(event, new Error('stray')), 1)
      expect(await result).toMatchObject({ status: 1, error: { message: 'the process failed: stray' } })
    }
  })

  it('passes a coded error of the body through with its exit status', async () => {
    const error = new TrilithonError('FEATURE_UNAVAILABLE', 'no')
    expect(await start(() => Promise.reject(error)).result).toEqual({ status: 3, error })
  })

  it('does not wait for ever for a disposal that hangs', async () => {
    const { result } = start(async ({ onDispose }) => onDispose('hanging', () => new Promise(() => undefined)), new FakeProcess(), 20)
    expect(await result).toMatchObject({ status: 1, error: { message: 'disposal took longer than 20 ms and was given up' } })
  })
})
