/** Steps that warm up. */
const warmUp = 20

/** Megabytes that the process grows by per step, from samples of its resident memory after each: medians of the first and of the last third, so that a garbage collection decides nothing. */
export function growthPerStep(megabytes: readonly number[]): number {
  const measured = megabytes.slice(warmUp)
  const third = Math.floor(measured.length / 3)
  const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
  return (median(measured.slice(-third)) - median(measured.slice(0, third))) / (measured.length - third)
}

export const residentMegabytes = () => process.memoryUsage.rss() / 2 ** 20
