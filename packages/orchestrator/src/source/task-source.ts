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
  environments: z.record(
    z.string(),
    z.strictObject({
      epoch: z.int().min(0),
      position: z.int().min(0),
      /** Tasks that were left out, and for which another one is to be drawn. */
      owed: z.int().min(0).optional(),
    }),
  ),
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
  owed: number
  order: Uint32Array | undefined
}

/** A task whose groups were given up that often is too slow for the bound on lag; it is left out until its next epoch. */
export const maxReturns = 3

/** Seed of the order of tasks, as in prime-rl. */
export const sourceSeed = 42

/** The fraction of the golden ratio: its multiples fill every stretch as evenly as any sequence can (Weyl; Knuth 6.4). */
const golden = (Math.sqrt(5) - 1) / 2

/**
 * Which task comes next: an environment by weight, then its dataset in an order that is new in every epoch. Weights are the ratios, or the sizes of the
 * datasets where there are no ratios (equal shares where one is endless). Environments are not drawn by chance but evenly, so that the shares hold in every stretch of
 * draws to within a task or two. For a task that is left out another one of its environment is drawn: a share is one of the groups that are trained, however
 * slow the environment is, as far as half of the draws go. The whole order is a function of the seed and of the position, which is saved.
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
      const { epoch = 0, position: place = 0, owed = 0 } = position?.environments[name] ?? {}
      return { name, tasks, seed: mix(seed, index + 1), epoch, position: place, owed, order: undefined }
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

  /** Returned tasks, and those that are drawn for ones left out, by turns with new ones, so that slow tasks cannot fill every place. */
  next(): SourceTask {
    const draw = this.#draws++
    return (draw % 2 === 0 ? (this.#returned.shift() ?? this.#owed()) : undefined) ?? this.#take(this.#walkOf(draw))
  }

  /** Takes back a task of a group that was given up; false where that happened too often and the task is left out. */
  giveBack(task: SourceTask): boolean {
    if (task.returns < maxReturns) {
      this.#returned.push({ ...task, returns: task.returns + 1 })
      return true
    }
    const walk = this.#walks.find(({ name }) => name === task.environment)
    if (walk !== undefined) walk.owed++
    return false
  }

  /** Where the source stands, if the tasks of `open` groups are to be drawn again. */
  position(open: readonly SourceTask[]): SourcePosition {
    return {
      draws: this.#draws,
      environments: Object.fromEntries(this.#walks.map(({ name, epoch, position, owed }) => [name, { epoch, position, owed }])),
      returned: [...open, ...this.#returned],
    }
  }

  #walkOf(draw: number): Walk {
    const point = (fraction(this.#seed, 0) + draw * golden) % 1
    const found = this.#cumulative.findIndex((bound) => point < bound)
    const walk = this.#walks[found === -1 ? this.#walks.length - 1 : found]
    invariant(walk !== undefined, 'A source has an environment.')
    return walk
  }

  /** Of the environment that is owed most. */
  #owed(): SourceTask | undefined {
    const walk = this.#walks.reduce<Walk | undefined>((most, one) => (one.owed > (most?.owed ?? 0) ? one : most), undefined)
    if (walk === undefined) return undefined
    walk.owed--
    return this.#take(walk)
  }

  #take(walk: Walk): SourceTask {
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
