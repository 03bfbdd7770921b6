import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chart } from './chart.ts'
import { plotRuns } from './plot-run.ts'
import { RunMetrics, readMetrics } from './read-metrics.ts'
import { roundScale, smooth, stepScale, thin } from './scale.ts'

describe('an axis', () => {
  it('has few round ticks that enclose every value', () => {
    const value = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 })
    fc.assert(
      fc.property(fc.array(value, { maxLength: 20 }), fc.integer({ min: 2, max: 10 }), (values, count) => {
        const scale = roundScale(values, count)
        for (const one of values) expect(scale.at(one)).toSatisfy((share: number) => share >= -1e-6 && share <= 1 + 1e-6)
        expect(scale.ticks.length).toBeGreaterThan(1)
        expect(scale.ticks.length).toBeLessThanOrEqual(count + 2)
      }),
    )
  })

  it('is labelled without needless digits', () => {
    const labels = (...ends: number[]) => {
      const scale = roundScale(ends, 4)
      return scale.ticks.map((tick) => scale.label(tick))
    }
    expect(labels(0, 1)).toEqual(['0', '0.5', '1.0'])
    expect(labels(0, 13_000)).toEqual(['0', '5k', '10k', '15k'])
    expect(labels(0, 9e-5)).toEqual(['0', '5e-5', '1e-4'])
    expect(labels(-2, 2)).toEqual(['-2', '-1', '0', '1', '2'])
    expect(labels(3, 3)).toEqual(['1', '2', '3', '4', '5'])
    expect(stepScale([0, 299], 5).ticks).toEqual([0, 100, 200])
  })
})

it('thinning and smoothing keep a straight line straight', () => {
  const line = Array.from({ length: 1000 }, (_, index) => [index, 3 * index] as const)
  for (const points of [thin(line, 37), smooth(line, 9)]) for (const [x, y] of points) expect(y).toBeCloseTo(3 * x, 6)
  expect(thin(line, 37)).toHaveLength(37)
  expect(thin(line.slice(0, 5), 37)).toEqual(line.slice(0, 5))
})

describe('a picture', () => {
  const run = (steps: number) => {
    const metrics = new RunMetrics()
    for (let step = 0; step < steps; step++)
      metrics.add(step, { 'reward/all/mean': step / steps, 'lag/max': step % 2, 'entropy/all/mean': 1, 'time/wall': step })
    metrics.add(0, { 'eval/reverse-text/avg@1': 0.1 })
    metrics.add(steps, { 'eval/reverse-text/avg@1': 0.9 })
    return metrics
  }

  it('puts every value at its place', () => {
    const svg = chart({
      title: 'T',
      xTitle: 'step',
      panels: [
        {
          title: 'P',
          isWide: true,
          includes: [0, 1],
          series: [
            {
              name: 'a',
              points: [
                [0, 0],
                [10, 1],
              ],
              style: 'line',
              color: 0,
            },
          ],
        },
      ],
    })
    // The corners of the area, from the sizes that are written in the chart: margin 20, left 46, right 8, title 34, top 30, height 240, bottom 34.
    expect(svg).toContain('points="66,260 832,84"')
  })

  it('of a run has its panels, its evaluations and no script; of several runs their names once', () => {
    const one = plotRuns([{ name: 'a', metrics: run(300) }], 'a <b> & "c"')
    expect(one).toContain('aria-label="a &#60;b&#62; &#38; &#34;c&#34;"')
    for (const title of ['Reward', 'evaluation', 'Lag (versions)', 'Entropy', '300 steps in 4:59']) expect(one).toContain(`>${title}`)
    expect(one).not.toContain('Gradient norm')
    expect(one.match(/<circle [^>]*r="3.6"/g)).toHaveLength(3)
    expect(one).toMatch(/prefers-color-scheme:dark/)
    expect(one).not.toMatch(/<script|href|NaN|undefined|Infinity/)
    const two = plotRuns(
      [
        { name: 'seed 1', metrics: run(300) },
        { name: 'seed 2', metrics: run(200) },
      ],
      'two',
    )
    expect(two.match(/>seed 1</g)).toHaveLength(1)
  })

  it('of a long run stays small, of a short or an empty one is whole', () => {
    expect(plotRuns([{ name: 'a', metrics: run(20_000) }], 'long').length).toBeLessThan(100_000)
    for (const steps of [0, 1, 2]) expect(plotRuns([{ name: 'a', metrics: run(steps) }], 'short')).not.toMatch(/NaN|Infinity/)
  })
})

it('files of metrics are merged by step; what is no line of one is passed over', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-plot-'))
  try {
    const path = join(folder, 'metrics.jsonl')
    expect(() => readMetrics(path)).toThrow(expect.objectContaining({ code: 'DATA_NOT_FOUND' }) as Error)
    writeFileSync(path, 'x\n')
    expect(() => readMetrics(path)).toThrow(expect.objectContaining({ code: 'DATA_INVALID' }) as Error)
    writeFileSync(path, '{"step":1,"role":"trainer","loss":2}\n{"step":0,"loss":3}\n{"step":1,"lag":1}\n{"step":1,"loss":4}\n{"step":2,"lo')
    const metrics = readMetrics(path)
    expect(metrics.series('loss')).toEqual([
      [0, 3],
      [1, 4],
    ])
    expect(metrics.keys()).toEqual(['lag', 'loss'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
