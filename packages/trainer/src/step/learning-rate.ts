import { invariant } from '@trilithon/core'
import type { z } from 'zod'
import type { SchedulerTable } from '../configuration/optim-table.ts'

export type Scheduler = z.output<typeof SchedulerTable>

/** A rate of exactly 0 in the first step of a warm-up would be a step that trains nothing. */
const leastStart = 1e-8

/**
 * The rate of optimiser step `step`, counted from 0. `maxSteps` is where the schedule ends: `cosine`, and `linear` with decay, need it.
 *
 * `linear` rises from `min_lr` over `warmup_steps`, stays, and falls to `min_lr` in the last `decay_steps`, the last step having `min_lr` itself;
 * `cosine` falls from the end of the warm-up to `min_lr` at `maxSteps`.
 */
export function learningRate(scheduler: Scheduler, rate: number, step: number, maxSteps: number | null): number {
  if (scheduler.type === 'constant' || rate === 0) return rate
  const { warmup_steps: warmup, min_lr: least } = scheduler
  const floor = least / rate
  if (step < warmup) {
    const start = Math.max(floor, leastStart)
    return rate * (start + ((1 - start) * step) / warmup)
  }
  if (scheduler.type === 'cosine') {
    invariant(maxSteps !== null, 'a cosine has an end')
    const share = Math.min(1, (step - warmup) / Math.max(1, maxSteps - warmup))
    return least + ((rate - least) * (1 + Math.cos(Math.PI * share))) / 2
  }
  const { decay_steps: decay } = scheduler
  if (decay === 0) return rate
  invariant(maxSteps !== null, 'a decay has an end')
  const into = step - (maxSteps - decay)
  if (into <= 0 || decay === 1) return rate
  return rate * (1 + (floor - 1) * Math.min(1, into / (decay - 1)))
}
