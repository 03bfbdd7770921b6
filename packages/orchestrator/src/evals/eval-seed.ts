import { createHash } from 'node:crypto'

export interface EvalSeedOptions {
  /** Of the run: that of its datasets. */
  readonly seed: number
  readonly environment: string
  readonly taskIndex: number
  /** Place in the group: each of the `k` answers to a task is drawn by itself. */
  readonly index: number
}

/**
 * Seed of an episode of an evaluation, from 0 to 2^31 - 1. It does not know the step: answers of the same weights are the same bit for bit, and two steps are
 * compared on the same draws. Of a digest, so that neighbours share nothing: an engine may add small numbers to a seed.
 */
export function evalSeed({ seed, environment, taskIndex, index }: EvalSeedOptions): number {
  return createHash('sha256').update(`${seed}/${taskIndex}/${index}/${environment}`).digest().readUInt32BE(0) >>> 1
}
