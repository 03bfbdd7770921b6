/** Time of a sequence of n tokens: `linear`·n + `quadratic`·n², the second for attention. Only ratios matter. */
export interface CostCoefficients {
  readonly linear: number
  readonly quadratic: number
}

/** Where nothing is known of the model: tokens alone. */
export const tokenCost: CostCoefficients = { linear: 1, quadratic: 0 }

export function packingCost(lengths: readonly number[], { linear, quadratic }: CostCoefficients): number {
  return lengths.reduce((sum, length) => sum + linear * length + quadratic * length * length, 0)
}
