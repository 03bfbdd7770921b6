import { refuse } from '../refuse.ts'
import { activeTape, isInsideCheckpoint, type Tape } from '../tape.ts'

/**
 * The first hook of parallelism: *parameters of a unit are needed / no longer needed / have gradients*. A plugin that shards parameters fills it
 * with native ops; on one device there is nothing to do (`localParameters`). Models call it through `withUnit`.
 *
 * Contract:
 * - G1 Between `need(unit)` and the `release(unit)` that belongs to it, every parameter of the unit has its whole value.
 * - G2 Calls nest: a unit that was needed twice stays until it was released twice.
 * - G3 `need` gives the same bits each time until the optimiser has stepped.
 * - G4 A `release` without a `need`, and a unit that the filling does not know, are refused by name.
 * - G5 After `gradientsReady(unit)` the gradients that this rank owns are reduced over all ranks of a unit's axes; how the parameters hold them
 *   is the filling's business.
 *
 * What `withUnit` promises in return:
 * - G6 `need` and `release` come in pairs, in the forward and again in the backward, also when the body or a backward step throws.
 * - G7 `gradientsReady(unit)` comes once per backward, after the last contribution to any parameter of the unit and before its `release`.
 * - G8 Units are entered in the backward in the reverse order of the forward.
 */
export interface ParameterGathering {
  need(unit: string): void
  release(unit: string): void
  gradientsReady(unit: string): void
}

/** How many uses of a unit a tape has recorded and not yet run back through. */
const usesOf = new WeakMap<Tape, Map<string, number>>()

/** Runs `body`, which computes with the parameters of `unit`, and sees to it that they are there: now, and again in the backward. */
export function withUnit<T>(gathering: ParameterGathering, unit: string, body: () => T): T {
  if (isInsideCheckpoint()) refuse('withUnit', 'unit', 'a unit around a checkpoint', `unit ${unit} inside of one`)
  const tape = activeTape()
  let isNeeded = false
  const release = () => {
    if (!isNeeded) return
    isNeeded = false
    gathering.release(unit)
  }
  const need = () => {
    gathering.need(unit)
    isNeeded = true
  }
  if (tape !== null) {
    const uses = usesOf.get(tape) ?? new Map<string, number>()
    usesOf.set(tape, uses)
    uses.set(unit, (uses.get(unit) ?? 0) + 1)
    // Recorded before the body, so it runs after the body's backward.
    tape.mark(() => {
      const left = (uses.get(unit) ?? 1) - 1
      uses.set(unit, left)
      if (left === 0) gathering.gradientsReady(unit)
      release()
    })
    tape.whenEnded(release)
  }
  need()
  try {
    return body()
  } finally {
    release()
    tape?.mark(need)
  }
}

/** One device: every parameter has its value all the time, and gradients are where they belong. Checks that calls are in pairs. */
export function localParameters(units: readonly string[]): ParameterGathering {
  const needed = new Map(units.map((unit) => [unit, 0]))
  const change = (op: string, unit: string, by: number) => {
    const count = needed.get(unit) ?? refuse(op, 'unit', `one of the units ${units.join(', ')}`, unit)
    if (count + by < 0) refuse(op, 'unit', 'a unit that is needed', `${unit}, which is not`)
    needed.set(unit, count + by)
  }
  return {
    need: (unit) => change('need', unit, 1),
    release: (unit) => change('release', unit, -1),
    gradientsReady: (unit) => change('gradientsReady', unit, 0),
  }
}
