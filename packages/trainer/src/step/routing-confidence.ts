/**
 * How sure the routers of a step are: of all scores that a token's experts could have, the share of those that it goes to, as a mean over tokens. By MoE
 * layer, and over layers under prime-rl's names.
 */
export class RoutingConfidence {
  readonly #sums = new Map<number, number>()
  #tokens = 0

  /** `shares`: sums over these tokens, by layer. */
  add(shares: ReadonlyMap<number, number>, tokens: number): void {
    for (const [layer, share] of shares) this.#sums.set(layer, (this.#sums.get(layer) ?? 0) + share)
    this.#tokens += tokens
  }

  /** Nothing for a model without experts. */
  values(): Record<string, number> {
    if (this.#sums.size === 0 || this.#tokens === 0) return {}
    const means = [...this.#sums].map(([layer, sum]) => [layer, sum / this.#tokens] as const)
    const values = means.map(([, value]) => value)
    return {
      ...Object.fromEntries(means.map(([layer, value]) => [`routing_confidence/layer_${layer}`, value])),
      'routing_confidence/mean': values.reduce((sum, value) => sum + value, 0) / values.length,
      'routing_confidence/min': Math.min(...values),
      'routing_confidence/max': Math.max(...values),
    }
  }
}
