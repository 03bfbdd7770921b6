import { formatSource, TrilithonError } from '@trilithon/core'
import { envServerRoot } from '@trilithon/environments/configuration'
import { inferenceRoot } from '@trilithon/inference/configuration'
import { orchestratorRoot } from '@trilithon/orchestrator/configuration'
import { sftRoot, trainerRoot } from '@trilithon/trainer/configuration'
import { knownKeys } from '../config/shape.ts'
import type { TableNode } from '../config/tree.ts'
import { rlRoot } from '../roots/rl-root.ts'
import { type SharedKey, sharedKeys } from '../roots/shared-keys.ts'
import type { Mount } from './mount.ts'

export const rootNames = ['rl', 'sft', 'inference', 'trainer', 'orchestrator', 'env-server'] as const
export type RootName = (typeof rootNames)[number]

/** `required`: its table must be written, if only empty; `written`: part of the composition only where its table is; `always` otherwise. */
export interface RootMount extends Mount {
  readonly presence: 'always' | 'required' | 'written'
}

export interface RootDefinition {
  readonly name: RootName
  /** One sentence for `--help`. */
  readonly summary: string
  readonly mounts: readonly RootMount[]
  readonly sharedKeys: readonly SharedKey[]
}

const owners = {
  rl: '@trilithon/runtime',
  trainer: '@trilithon/trainer',
  orchestrator: '@trilithon/orchestrator',
  inference: '@trilithon/inference',
  environments: '@trilithon/environments',
} as const

const trainer: RootMount = { root: trainerRoot, at: [], role: 'trainer', owner: owners.trainer, presence: 'always' }
const orchestrator: RootMount = { root: orchestratorRoot, at: [], role: 'orchestrator', owner: owners.orchestrator, presence: 'always' }
const inference: RootMount = { root: inferenceRoot, at: [], role: 'inference', owner: owners.inference, presence: 'always' }

const definitions: readonly RootDefinition[] = [
  {
    name: 'rl',
    summary: 'Reinforcement learning: inference, orchestrator and trainer as one run.',
    mounts: [
      { root: rlRoot, at: [], role: undefined, owner: owners.rl, presence: 'always' },
      { ...trainer, at: ['trainer'], presence: 'required' },
      { ...orchestrator, at: ['orchestrator'], presence: 'required' },
      { ...inference, at: ['inference'], presence: 'written' },
    ],
    sharedKeys,
  },
  {
    name: 'sft',
    summary: 'Supervised fine-tuning.',
    mounts: [{ root: sftRoot, at: [], role: 'trainer', owner: owners.trainer, presence: 'always' }],
    sharedKeys: [],
  },
  { name: 'inference', summary: 'The inference server alone.', mounts: [inference], sharedKeys: [] },
  { name: 'trainer', summary: 'The reinforcement-learning trainer alone.', mounts: [trainer], sharedKeys: [] },
  { name: 'orchestrator', summary: 'The orchestrator alone.', mounts: [orchestrator], sharedKeys: [] },
  {
    name: 'env-server',
    summary: 'An environment server alone.',
    mounts: [{ root: envServerRoot, at: [], role: 'environment', owner: owners.environments, presence: 'always' }],
    sharedKeys: [],
  },
]

export function findRoot(name: RootName): RootDefinition {
  const found = definitions.find((definition) => definition.name === name)
  if (found === undefined)
    throw new TrilithonError('USAGE_INVALID', `there is no role "${name}"`, { hint: `Roles: ${rootNames.join(', ')}.` })
  return found
}

/** Keys that may stand at the top of a file of this root, other spellings included. */
export function topLevelKeys(definition: RootDefinition): ReadonlySet<string> {
  const keys = new Set<string>(['plugins'])
  for (const mount of definition.mounts) {
    if (mount.at.length > 0) {
      keys.add(mount.at[0] ?? '')
      continue
    }
    for (const key of knownKeys([mount.root.schema])) keys.add(key)
    for (const move of mount.root.moves ?? []) keys.add(move.from.split('.')[0] ?? '')
    for (const slot of mount.root.slots ?? []) keys.add(slot.at.split('.')[0] ?? '')
  }
  return keys
}

/**
 * A file of another root: it has keys that this root does not know, or lacks the tables that it needs, and another root knows all of its keys.
 * One error instead of one per key.
 */
export function guessRoot(definition: RootDefinition, tree: TableNode): TrilithonError | undefined {
  const written = [...tree.entries].filter(([, node]) => node.source.kind === 'file')
  const own = topLevelKeys(definition)
  const foreign = written.filter(([key]) => !own.has(key))
  const [first] = foreign
  if (first === undefined) return undefined
  const other = definitions.find((one) => {
    const keys = topLevelKeys(one)
    return one !== definition && written.length > 1 && written.every(([key]) => keys.has(key))
  })
  if (other === undefined) return undefined
  const [key, node] = first
  const file = node.source.kind === 'file' ? node.source.file : formatSource(node.source)
  return new TrilithonError(
    'CONFIG_ROOT_WRONG',
    `${file} is a configuration for \`${other.name}\`, not for \`${definition.name}\`: \`${key}\` is a key of the former`,
    {
      path: key,
      source: node.source,
      hint: `Run: trilithon ${other.name} @ ${file}`,
    },
  )
}

/** Tables that the root needs and that are not written; an empty one is enough. */
export function missingParts(definition: RootDefinition, tree: TableNode): TrilithonError[] {
  return definition.mounts.flatMap(({ at, presence }) => {
    const path = at.join('.')
    if (presence !== 'required' || tree.entries.has(path)) return []
    const message = `\`${definition.name}\` needs the table [${path}], and no file has it`
    return [new TrilithonError('CONFIG_VALUE_INVALID', message, { path, source: tree.source, hint: `Write [${path}]; it may be empty.` })]
  })
}
