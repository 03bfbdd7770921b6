import { silentLogger } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { createFakeEngine } from '../__fixtures__/fake-engine.ts'
import type { EngineStats } from '../engine/engine.ts'
import { stateOf, sumUsage, type Usage, UsageMeter, usageOf, usageValues } from './usage.ts'
import { UsageView } from './usage-view.ts'

const idle: Usage = {
  ...{ version: 3, isPaused: false, running: 0, waiting: 0, throughput: 0, promptThroughput: 0, cacheUse: 0, hitRate: null },
  ...{ finished: 0, preemptions: 0, isActive: false },
}
const busy: Usage = {
  ...idle,
  running: 12,
  waiting: 3,
  throughput: 512.4,
  promptThroughput: 100,
  cacheUse: 0.034,
  hitRate: 0.5,
  isActive: true,
}

function screen(isTTY: boolean, columns = 200) {
  const written: string[] = []
  return { written, output: { isTTY, columns, write: (text: string) => written.push(text) } }
}

describe('a meter', () => {
  it('turns counts between two looks into rates', async () => {
    const engine = createFakeEngine({ blocks: 200 })
    const before: EngineStats = engine.stats()
    await engine.dispose()
    const meter = new UsageMeter(engine.info, before, 1000)
    const after: EngineStats = {
      ...{ ...before, steps: 10, running: 4, waiting: 2, usedBlocks: 50, generatedTokens: 300, promptTokens: 100 },
      ...{ prefixQueries: 80, prefixHits: 30, storeHits: 10, preemptions: 1, finished: { stop: 1, length: 2, abort: 1, error: 0 } },
    }
    expect(meter.take(after, 3000)).toMatchObject({
      ...{ throughput: 150, promptThroughput: 50, cacheUse: 0.25, hitRate: 0.5, finished: 4, preemptions: 1, isActive: true },
    })
    expect(meter.take(after, 4000)).toMatchObject({ throughput: 0, hitRate: null, finished: 0, isActive: false })
  })

  it('calls idle what waits, and several engines one', () => {
    expect([stateOf(idle), stateOf(busy), stateOf({ ...busy, isPaused: true })]).toEqual(['waiting for requests', 'generating', 'paused'])
    expect(sumUsage([busy, { ...busy, version: 2, cacheUse: 0.1, hitRate: null }])).toMatchObject({
      ...{ running: 24, waiting: 6, throughput: 1024.8, version: 2, hitRate: 0.5 },
      cacheUse: expect.closeTo(0.067),
    })
    expect(usageOf(usageValues(busy))).toEqual(busy)
  })
})

describe('the view', () => {
  it('is one line that changes on a terminal, no longer than it is wide, with log lines above it', () => {
    const { written, output } = screen(true, 60)
    const view = new UsageView({ output, json: null })
    const log = view.around({ ...silentLogger, info: (message) => written.push(`${message}\n`) })
    view.refresh(busy)
    log.info('weights updated')
    view.refresh(idle)
    view.line(busy)
    view.close()
    view.close()
    expect(written.join('')).toMatch(
      /^\r.\[K12 running {2}3 waiting {2}512 tokens\/s.*\r.\[Kweights updated\n\r.\[K12 running.*\r.\[K0 running.*\n$/s,
    )
    for (const line of written.join('').split(/[\r\n]/)) expect(line.replace('\u001b[K', '').length).toBeLessThan(60)
  })

  it('is a line now and then elsewhere, and one alone while nothing happens', () => {
    const { written, output } = screen(false)
    const view = new UsageView({ output, json: null })
    for (const usage of [idle, idle, busy, busy, idle, idle, idle]) {
      view.refresh(usage)
      view.line(usage)
    }
    view.close()
    expect(written.map((line) => line.split(' ')[0])).toEqual(['0', '12', '12', '0'])
    expect(written[1]).toBe('12 running | 3 waiting | 512 tokens/s | prompts 100 tokens/s | cache 3.4% | hits 50% | weights v3\n')
  })

  it('is JSON lines of the logger where those are asked for, and nothing beside them', () => {
    const { written, output } = screen(true)
    const lines: unknown[] = []
    const view = new UsageView({ output, json: { ...silentLogger, info: (_, fields) => lines.push(fields) } })
    view.refresh(busy)
    view.line(busy)
    view.print('Serving')
    expect(written).toEqual([])
    expect(lines).toMatchObject([{ state: 'generating', running: 12, throughput: 512.4 }])
  })
})
