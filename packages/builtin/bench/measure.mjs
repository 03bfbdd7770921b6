// @ts-check
/** What the benchmarks share: interleaved rounds of two things in one process, and a report with its machine. */
import { cpus } from 'node:os'

const pairs = 15

/** @param {number[]} values */
const sorted = (values) => [...values].sort((a, b) => a - b)
/** @param {number[]} values */
export const median = (values) => sorted(values)[values.length >> 1] ?? Number.NaN

/**
 * Runs both in turn and gives the median of each in nanoseconds per call, with the median ratio and its 95 % interval (by order statistics).
 *
 * @param {{ calls: number, run: () => unknown }} subject @param {{ calls: number, run: () => unknown }} limit
 */
export async function compare(subject, limit) {
  /** @type {{ subject: number[], limit: number[], ratio: number[] }} */
  const rounds = { subject: [], limit: [], ratio: [] }
  const time = async (/** @type {{ calls: number, run: () => unknown }} */ { calls, run }) => {
    const start = process.hrtime.bigint()
    await run()
    return Number(process.hrtime.bigint() - start) / calls
  }
  for (let warmUp = 0; warmUp < 3; warmUp++) for (const side of [subject, limit]) await time(side)
  for (let pair = 0; pair < pairs; pair++) {
    const [subjectNs, limitNs] = [await time(subject), await time(limit)]
    rounds.subject.push(subjectNs)
    rounds.limit.push(limitNs)
    rounds.ratio.push(subjectNs / limitNs)
  }
  const ratios = sorted(rounds.ratio)
  // Ranks 4 and 12 of 15 enclose the median with a probability of 96.5 %.
  return { subjectNs: median(rounds.subject), limitNs: median(rounds.limit), ratio: median(ratios), interval: [ratios[3], ratios[11]] }
}

/** @param {string[]} lines */
export function report(...lines) {
  const [cpu] = cpus()
  process.stdout.write(
    [
      `${cpu?.model ?? 'unknown CPU'}, ${cpus().length} cores, Node ${process.versions.node}, one thread, ${pairs} pairs`,
      ...lines,
      '',
    ].join('\n'),
  )
}
