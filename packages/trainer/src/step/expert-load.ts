import { type Tensor, toArray } from '@trilithon/tensor'

/** How many rows each expert of each MoE layer got in a step. */
export class ExpertLoad {
  readonly #counts = new Map<number, Float64Array>()

  /** `starts`: first row of each expert and the end of the last, i32 [experts + 1], by layer. */
  add(starts: ReadonlyMap<number, Tensor>): void {
    for (const [layer, tensor] of starts) {
      const values = toArray(tensor) as Int32Array
      const counts = this.#counts.get(layer) ?? new Float64Array(values.length - 1)
      for (let expert = 0; expert < counts.length; expert++)
        counts[expert] = (counts[expert] ?? 0) + (values[expert + 1] ?? 0) - (values[expert] ?? 0)
      this.#counts.set(layer, counts)
    }
  }

  /** Rows by expert, by layer. */
  get counts(): ReadonlyMap<number, Float64Array> {
    return this.#counts
  }

  /**
   * `max_vio`: the busiest expert over the mean, minus 1; 0 is balance. By layer, and their mean and maximum under prime-rl's names. Also the number of
   * experts that got nothing.
   */
  values(): Record<string, number> {
    const result: Record<string, number> = {}
    const excess: number[] = []
    for (const [layer, counts] of this.#counts) {
      const total = counts.reduce((sum, count) => sum + count, 0)
      if (total === 0) continue
      const value = (Math.max(...counts) * counts.length) / total - 1
      excess.push(value)
      result[`max_vio/layer_${layer}`] = value
      result[`idle_experts/layer_${layer}`] = counts.filter((count) => count === 0).length
    }
    if (excess.length === 0) return result
    return { ...result, 'max_vio/mean': excess.reduce((sum, value) => sum + value, 0) / excess.length, 'max_vio/max': Math.max(...excess) }
  }
}
