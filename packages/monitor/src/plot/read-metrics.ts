import { readFileSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'
import { parseLine } from '../metrics-file.ts'

/** `[step, value]`, by rising steps. */
export type Point = readonly [x: number, y: number]

/** A file of metrics, its lines merged by step: of a value that is there twice for a step, the later one. */
export class RunMetrics {
  readonly #steps = new Map<number, Record<string, number>>()

  add(step: number, values: Readonly<Record<string, unknown>>): void {
    const merged = this.#steps.get(step) ?? {}
    for (const [key, value] of Object.entries(values)) if (key !== 'step' && typeof value === 'number') merged[key] = value
    this.#steps.set(step, merged)
  }

  /** Names of all values. */
  keys(): string[] {
    return [...new Set([...this.#steps.values()].flatMap((values) => Object.keys(values)))].sort()
  }

  /** How many steps were made. An evaluation behind the last one has the number of a step that was not. */
  steps(): number {
    return [...this.#steps.values()].filter((values) => Object.keys(values).some((key) => !key.startsWith('eval/'))).length
  }

  series(key: string): Point[] {
    const points = [...this.#steps].flatMap(([step, values]): Point[] => {
      const value = values[key]
      return value !== undefined && Number.isFinite(value) ? [[step, value]] : []
    })
    return points.sort(([a], [b]) => a - b)
  }

  /** The first of `keys` that has values, and those. */
  firstSeries(keys: readonly string[]): Point[] {
    return keys.map((key) => this.series(key)).find((points) => points.length > 0) ?? []
  }
}

/** Throws `DATA_NOT_FOUND` where there is no such file, `DATA_INVALID` where no line of it has a step. */
export function readMetrics(path: string): RunMetrics {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new TrilithonError('DATA_NOT_FOUND', `${path} cannot be read: ${(cause as Error).message}`, {
      path,
      hint: 'Give the output folder of a run, or its metrics.jsonl.',
      cause,
    })
  }
  const metrics = new RunMetrics()
  let found = 0
  for (const line of text.split('\n')) {
    const values = parseLine(line)
    if (values === undefined) continue
    metrics.add(values.step, values)
    found++
  }
  if (found === 0)
    throw new TrilithonError('DATA_INVALID', `${path} holds no line of metrics`, { path, hint: 'Wait for the first step of the run.' })
  return metrics
}
