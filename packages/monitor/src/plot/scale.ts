import type { Point } from './read-metrics.ts'

/** An axis: where values lie, and the round numbers that are written beside it. */
export interface Scale {
  readonly low: number
  readonly high: number
  readonly ticks: readonly number[]
  /** Share of the axis, 0 to 1. */
  at(value: number): number
  label(tick: number): string
}

/** Covers `values` and `includes` with round ends, with about `count` steps of 1, 2 or 5 times a power of ten. */
export function roundScale(values: readonly number[], count: number, includes: readonly number[] = []): Scale {
  const all = [...values, ...includes]
  const [least, most] = all.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity] as [number, number])
  const [from, to] = widened(least, most)
  const step = roundStep((to - from) / count)
  const first = Math.floor(from / step + 1e-9)
  const last = Math.max(first + 1, Math.ceil(to / step - 1e-9))
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)))
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1]
  const digits = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))
  return {
    low,
    high,
    ticks,
    at: (value) => (value - low) / (high - low),
    label: (tick) => tickLabel(tick, digits, Math.max(Math.abs(low), Math.abs(high))),
  }
}

/** Ends that are far enough apart to divide. */
function widened(least: number, most: number): [number, number] {
  if (!(least <= most)) return [0, 1]
  const size = Math.max(Math.abs(least), Math.abs(most))
  if (most - least > Math.max(1e-9 * size, 1e-30)) return [least, most]
  return size <= 1e-30 ? [0, 1] : [least - size / 2, most + size / 2]
}

/** An axis of steps: it ends where the data do, with round numbers within. */
export function stepScale(values: readonly number[], count: number): Scale {
  const round = roundScale(values, count)
  const low = values.length === 0 ? 0 : values.reduce((a, b) => Math.min(a, b))
  const most = values.length === 0 ? 1 : values.reduce((a, b) => Math.max(a, b))
  const high = most > low ? most : low + 1
  const ticks = round.ticks.filter((tick) => tick >= low && tick <= high && Number.isInteger(tick))
  return { ...round, low, high, ticks, at: (value) => (value - low) / (high - low) }
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough))
  const factor = [1, 2, 5, 10].find((one) => one * power >= rough * (1 - 1e-9)) ?? 10
  return factor * power
}

function tickLabel(value: number, digits: number, largest: number): string {
  if (value === 0) return '0'
  if (digits > 4) return Number(value.toPrecision(6)).toExponential()
  if (largest >= 10_000 && value % 100 === 0) return `${Number((value / 1000).toPrecision(6))}k`
  return value.toFixed(digits)
}

/** At most `count` points: each the mean of its share, so that a long run makes no large picture. */
export function thin(points: readonly Point[], count: number): Point[] {
  if (points.length <= count) return [...points]
  return Array.from({ length: count }, (_, index) => {
    const share = points.slice(Math.floor((index * points.length) / count), Math.floor(((index + 1) * points.length) / count))
    return mean(share)
  })
}

/** The mean over `window` neighbours of each point; fewer at the ends. */
export function smooth(points: readonly Point[], window: number): Point[] {
  const half = Math.floor(window / 2)
  return points.map(([x], index) => {
    const reach = Math.min(half, index, points.length - 1 - index)
    return [x, mean(points.slice(index - reach, index + reach + 1))[1]]
  })
}

function mean(points: readonly Point[]): Point {
  let [x, y] = [0, 0]
  for (const point of points) {
    x += point[0] / points.length
    y += point[1] / points.length
  }
  return [x, y]
}
