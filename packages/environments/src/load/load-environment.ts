import { alphabetSortEnvironment } from '../alphabet-sort/alphabet-sort.ts'
import { environmentName, withoutVersion } from '../configuration/environment-name.ts'
import {
  type AnyEnvironment,
  type EnvironmentDataset,
  type EnvironmentTask,
  environmentBrand,
  type TaskPlace,
} from '../define/define-environment.ts'
import { EpisodeFailure } from '../episode/episode-failure.ts'
import { reverseTextEnvironment } from '../reverse-text/reverse-text-environment.ts'
import { environmentInvalid } from './environment-invalid.ts'
import { importEnvironment } from './import-environment.ts'

/** An environment with its arguments, ready to run. */
export interface LoadedEnvironment {
  readonly definition: AnyEnvironment
  readonly name: string
  readonly args: unknown
  readonly settings: Readonly<Record<string, unknown>>
  readonly size: EnvironmentDataset<EnvironmentTask>['size']
  /** Rejects with `EpisodeFailure` of `TaskInvalid` for a place outside of the dataset, and with what the environment throws. */
  task(place: TaskPlace): Promise<EnvironmentTask>
  /** Its own id where it was made, else split and index. */
  taskId(place: TaskPlace | undefined): string
}

export interface LoadEnvironmentOptions {
  readonly id: string
  readonly name?: string | null | undefined
  readonly args: Readonly<Record<string, unknown>>
  readonly settings: Readonly<Record<string, unknown>>
  readonly workingDirectory: string
}

const builtIn: Readonly<Record<string, unknown>> = { 'reverse-text': reverseTextEnvironment, 'alphabet-sort': alphabetSortEnvironment }

/** Names that need no package. */
export const builtInEnvironments: readonly string[] = Object.keys(builtIn)

/** Finds, imports and checks an environment and makes its dataset. Throws `ENVIRONMENT_INVALID` that lists everything that is wrong. */
export async function loadEnvironment({ id, name, args, settings, workingDirectory }: LoadEnvironmentOptions): Promise<LoadedEnvironment> {
  const bare = withoutVersion(id)
  const exported = builtIn[bare] ?? (await importEnvironment(id, bare, workingDirectory))
  return prepareEnvironment(exported, { id, name: environmentName({ id, name }), args, settings })
}

/** Checks what a module exports and makes its dataset. Throws `ENVIRONMENT_INVALID` that lists everything that is wrong. */
export async function prepareEnvironment(
  exported: unknown,
  { id, name, args, settings }: Pick<LoadEnvironmentOptions, 'id' | 'args' | 'settings'> & { readonly name: string },
): Promise<LoadedEnvironment> {
  const faults = definitionFaults(exported)
  if (faults.length > 0) {
    throw environmentInvalid(id, faults.join('; '), 'Write `export default defineEnvironment({ … })`.')
  }
  const definition = exported as AnyEnvironment
  const parsed = definition.args.safeParse(args)
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `args${path.map((key) => `.${String(key)}`).join('')}: ${message}`)
    throw environmentInvalid(id, problems.join('; '), 'Correct `args` of the environment.')
  }
  const dataset = await makeDataset(id, definition, parsed.data, settings)
  return {
    definition,
    name,
    args: parsed.data,
    settings,
    size: dataset.size,
    ...taskSource(dataset),
  }
}

/** A task is made once per place while its episodes run: those of a group share it. */
function taskSource(dataset: EnvironmentDataset<EnvironmentTask>): Pick<LoadedEnvironment, 'task' | 'taskId'> {
  const kept = new Map<string, { readonly task: Promise<EnvironmentTask>; id: string }>()
  const mostKept = 1024
  const make = async (place: TaskPlace): Promise<EnvironmentTask> => {
    const size = dataset.size[place.split]
    if (!Number.isInteger(place.index) || place.index < 0 || (size !== null && place.index >= size))
      throw new EpisodeFailure('TaskInvalid', `there is no task ${place.index} of ${place.split}, which has ${size ?? 'no end'}`)
    const task: unknown = await dataset.task(place)
    if (typeof task !== 'object' || task === null)
      throw new EpisodeFailure('TaskInvalid', `task ${place.index} of ${place.split} is ${String(task)}`)
    return task
  }
  const keyOf = ({ split, index, seed }: TaskPlace) => `${split}/${index}/${seed}`
  return {
    task(place) {
      const key = keyOf(place)
      const known = kept.get(key)
      if (known !== undefined) return known.task
      const task = make(place)
      const entry = { task, id: `${place.split}/${place.index}` }
      kept.set(key, entry)
      task.then(
        (made) => {
          if ('id' in made && typeof made.id === 'string') entry.id = made.id
        },
        () => kept.delete(key),
      )
      const [oldest] = kept.keys()
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest)
      return task
    },
    taskId: (place) => (place === undefined ? '' : (kept.get(keyOf(place))?.id ?? `${place.split}/${place.index}`)),
  }
}

async function makeDataset(id: string, definition: AnyEnvironment, args: unknown, settings: Readonly<Record<string, unknown>>) {
  let dataset: EnvironmentDataset<EnvironmentTask>
  try {
    dataset = await definition.dataset(args, settings)
  } catch (cause) {
    throw environmentInvalid(
      id,
      `its dataset cannot be made: ${(cause as Error)?.message ?? String(cause)}`,
      'Correct the environment or its `args`.',
      cause,
    )
  }
  const { size, task } = (dataset ?? {}) as Partial<EnvironmentDataset<EnvironmentTask>>
  const isCount = (count: unknown) => count === null || (Number.isInteger(count) && (count as number) >= 0)
  if (!isCount(size?.train) || !isCount(size?.eval) || typeof task !== 'function')
    throw environmentInvalid(
      id,
      'its dataset has no `size` of `train` and `eval` (a number, or null for endless) and no `task`',
      'Return both from `dataset`.',
    )
  return dataset
}

/** What a value lacks to be an environment; empty for a good one. */
function definitionFaults(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || !(environmentBrand in value))
    return ['its default export is not made by defineEnvironment']
  const { name, args, scoring = 'rollout', dataset, episode, score } = value as Record<string, unknown>
  const faults: string[] = []
  if (typeof name !== 'string' || name === '') faults.push('`name` is no text')
  if (typeof (args as { safeParse?: unknown } | undefined)?.safeParse !== 'function')
    faults.push('`args` is no zod schema (`z.strictObject({})` where there are none)')
  if (scoring !== 'rollout' && scoring !== 'group') faults.push(`\`scoring\` is ${JSON.stringify(scoring)}, neither "rollout" nor "group"`)
  for (const [key, member] of Object.entries({ dataset, episode, score }))
    if (typeof member !== 'function') faults.push(`\`${key}\` is no function`)
  return faults
}
