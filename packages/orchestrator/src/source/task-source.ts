import { invariant } from '@trilithon/core'
import { z } from 'zod'
import { fraction, mix, shuffled } from './random.ts'

/** A task of an environment, by its place in the dataset; of an endless one by a number of its own. */
const Task = z.strictObject({
  environment: z.string(),
  index: z.int().min(0),
  /** How often a group of it was given up. */
  returns: z.int().min(0),
})
export type SourceTask = z.output<typeof Task>

/** Where a source stands: enough to go on exactly there. */
export const SourcePosition = z.strictObject({
  draws: z.int().min(0),
  environments: z.record(z.string(), z.strictObject({ epoch: z.int().min(0), position: z.int().min(0) })),
  /** Tasks that were drawn and are still to be trained. */
  returned: z.array(Task),
})
export type SourcePosition = z.output<typeof SourcePosition>

export interface SourceEnvironment {
  readonly name: string
  /** Size of the dataset; null is endless. */
  readonly tasks: number | null
  /** Share relative to the others; null where none has one. */
  readonly ratio: number | null
}

interface Walk {
  readonly name: string
  readonly tasks: number | null
  readonly seed: number
  epoch: number
  position: number
  order: Uint32Array | undefined
}

/** A task whose groups were given up that often is too slow for the bound on lag; it is left out until its next epoch. */
export const maxReturns = 3

/** Seed of the order of tasks, as in prime-rl. */
export const sourceSeed = 42

/**
 * Which task comes next: an environment by weight, then its dataset in an order that is new in every epoch. Weights are the ratios, or the sizes of the
 * datasets where there are no ratios (equal shares where one is endless). The whole order is a function of the seed and of the position, which is saved.
 */
export class TaskSource {
  readonly #walks: readonly Walk[]
  readonly #cumulative: readonly number[]
  readonly #seed: number
  readonly #returned: SourceTask[] = []
  #draws = 0

  constructor(environments: readonly SourceEnvironment[], seed: number = sourceSeed, position?: SourcePosition) {
    invariant(environments.length > 0, 'A source needs an environment.')
    this.#seed = seed
    this.#walks = environments.map(({ name, tasks }, index) => {
      const { epoch = 0, position: place = 0 } = position?.environments[name] ?? {}
      return { name, tasks, seed: mix(seed, index + 1), epoch, position: place, order: undefined }
    })
    const weights = weightsOf(environments)
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    let sum = 0
    this.#cumulative = weights.map((weight) => {
      sum += weight / total
      return sum
    })
    if (position !== undefined) {
      this.#draws = position.draws
      const known = new Set(environments.map(({ name }) => name))
      this.#returned.push(...position.returned.filter(({ environment }) => known.has(environment)))
    }
  }

  /** Returned tasks and new ones by turns while there are both, so that slow tasks cannot fill every place. */
  next(): SourceTask {
    const draw = this.#draws++
    if (draw % 2 === 1 || this.#returned.length === 0) return this.#fresh(draw)
    return this.#returned.shift() ?? this.#fresh(draw)
  }

  /** Takes back a task of a group that was given up; false where that happened too often and the task is left out. */
  giveBack(task: SourceTask): boolean {
    if (task.returns >= maxReturns) return false
    this.#returned.push({ ...task, returns: task.returns + 1 })
    return true
  }

  /** Where the source stands, if the tasks of `open` groups are to be drawn again. */
  position(open: readonly SourceTask[]): SourcePosition {
    return {
      draws: this.#draws,
      environments: Object.fromEntries(this.#walks.map(({ name, epoch, position }) => [name, { epoch, position }])),
      returned: [...open, ...this.#returned],
    }
  }

  #fresh(draw: number): SourceTask {
    const point = fraction(this.#seed, draw)
    const found = this.#cumulative.findIndex((bound) => point < bound)
    const walk = this.#walks[found === -1 ? this.#walks.length - 1 : found]
    invariant(walk !== undefined, 'A source has an environment.')
    if (walk.tasks === null) return { environment: walk.name, index: walk.position++, returns: 0 }
    if (walk.position >= walk.tasks) {
      walk.epoch++
      walk.position = 0
      walk.order = undefined
    }
    walk.order ??= shuffled(walk.tasks, mix(walk.seed, walk.epoch))
    return { environment: walk.name, index: walk.order[walk.position++] ?? 0, returns: 0 }
  }
}

function weightsOf(environments: readonly SourceEnvironment[]): number[] {
  const ratios = environments.flatMap(({ ratio }) => ratio ?? [])
  if (ratios.length === environments.length) return ratios
  const sizes = environments.flatMap(({ tasks }) => tasks ?? [])
  return sizes.length === environments.length ? sizes : environments.map(() => 1)
}
