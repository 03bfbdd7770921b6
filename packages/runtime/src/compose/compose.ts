import { combineProblems, type RunFacts, TrilithonError } from '@trilithon/core'
import { gather } from '../config/gather.ts'
import { joinPath, nodeAt, sourceAt, type TableNode, withNode } from '../config/tree.ts'
import { builtInPlugins } from '../plugins/built-in.ts'
import { seamsById } from '../plugins/discover.ts'
import { knownPlugins } from '../plugins/known-plugins.ts'
import { checkPlugins, type KernelReason } from './check-plugins.ts'
import { type Chosen, choosePlugins, isNull } from './choose-plugins.ts'
import type { ComposedPlugin, Composition } from './composition.ts'
import { defaultPlugins } from './default-plugins.ts'
import { findByName, gatherCandidates } from './gather-candidates.ts'
import { inWrittenOrder } from './in-written-order.ts'
import { lookupSchemas } from './lookup-schemas.ts'
import type { Mount } from './mount.ts'
import { orderPlugins } from './order-plugins.ts'
import { ownerHintOf } from './owner-hint.ts'
import { absentPlugins, type ClaimedValue, followedFromOthers, parseAbsent, parsePluginConfig, unusedTable } from './plugin-config.ts'
import { prepareTree } from './prepare-tree.ts'
import { resolveRoots } from './resolve-roots.ts'
import { findRoot, guessRoot, missingParts, type RootDefinition, type RootName } from './root-definitions.ts'
import { oncePerShared } from './share-keys.ts'

export interface ComposeRequest {
  readonly root: RootName
  /** What follows the role on the command line: `@ a.toml --max-steps 5`. */
  readonly argv: readonly string[]
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
  /** Why a native kernel cannot run here; without it every kernel counts as available. */
  readonly kernelReason?: KernelReason
}

/**
 * From a command line to a checked configuration: gather, choose plugins, parse strictly, order, check. Reads files and starts nothing.
 *
 * Throws one TrilithonError with all problems that can be known together.
 */
export function compose(request: ComposeRequest): Promise<Composition> {
  return composeRoot(findRoot(request.root), request)
}

/** `compose` for a root that is described by the caller. */
export async function composeRoot(definition: RootDefinition, request: Omit<ComposeRequest, 'root'>): Promise<Composition> {
  const { workingDirectory } = request
  const known = knownPlugins()
  const gathered = gather(request.argv, workingDirectory, lookupSchemas(definition.mounts, builtInPlugins, known))
  // Without all files every later problem could be a consequence of a missing one.
  if (gathered.problems.length > 0) throw combineProblems(gathered.problems)
  const tree = withoutAbsentParts(gathered.tree, definition)
  const wrong = guessRoot(definition, tree)
  if (wrong !== undefined) throw wrong
  const missing = missingParts(definition, tree)
  if (missing.length > 0) throw combineProblems(missing)

  const prepared = prepareTree(tree, definition, request.environment)
  const mounts = definition.mounts.filter((mount) => mount.presence !== 'written' || isTable(prepared.tree, mount))
  const absentParts = definition.mounts.filter((mount) => !mounts.includes(mount)).map((mount) => mount.at.join('.'))
  const candidates = await gatherCandidates(prepared.tree, workingDirectory)
  const choice = choosePlugins(prepared.tree, mounts, candidates.all, known, (type) => findByName(type, workingDirectory))
  const problems = [...prepared.problems, ...candidates.problems, ...choice.problems]

  const roles = [...new Set(mounts.flatMap((mount) => mount.role ?? []))]
  const chosen = defaultPlugins(choice.chosen, candidates.all, candidates.listed, roles)
  problems.push(...seamConflicts(chosen, prepared.tree))
  const claimed: ClaimedValue[] = []
  const plugins: ComposedPlugin[] = []
  for (const one of chosen) {
    const loaded = await loadPlugin(one, mounts)
    problems.push(...loaded.problems)
    claimed.push(...loaded.values)
    const inRun = one.candidate.manifest.runs_in.filter((role) => roles.includes(role))
    if (loaded.plugin !== undefined && inRun.length > 0) plugins.push({ ...loaded.plugin, roles: inRun })
  }
  const absent = choice.absent.map(parseAbsent)
  problems.push(...absent.flatMap((one) => one.problems))
  claimed.push(...absent.flatMap((one) => one.value ?? []))

  const resolution = resolveRoots(choice.tree, prepared.tree, mounts, {
    absentParts,
    claimed,
    ownerHint: ownerHintOf(mounts, known),
    sharedConflict: prepared.problems.length > 0,
  })
  problems.push(...resolution.problems)
  const { ordered, problems: disorder } = orderPlugins(plugins)
  problems.push(...disorder)
  const run = runFacts(roles, workingDirectory, resolution.resolved, mounts)
  const derived = choice.absent.flatMap((use) => followedFromOthers(use, resolution.resolved, mounts, prepared.tree))
  const unavailable = [...absent.flatMap((one) => one.unavailable), ...derived, ...resolution.unavailable]
  // A check sees a parsed configuration, so it can only be asked when there is one. What is listed as unavailable is not a fault besides.
  if (problems.length === 0) {
    const found = checkPlugins(ordered, run, mounts, prepared.tree, request.kernelReason ?? (() => undefined))
    problems.push(...found.filter((problem) => !unavailable.some(({ path }) => path === problem.path)))
  }
  if (problems.length > 0) throw combineProblems(inWrittenOrder(oncePerShared(problems, prepared.origins), gathered.files))

  const unused = [...candidates.listed].filter((candidate) => !chosen.some((one) => one.candidate === candidate))
  return {
    root: definition.name,
    mounts,
    roles,
    tree: prepared.tree,
    resolved: resolution.resolved,
    plugins: ordered,
    absent: absentPlugins(known, unavailable),
    owned: choice.owned,
    unavailable,
    ignored: resolution.ignored,
    overruled: [...resolution.overruled, ...choice.absent.flatMap(unusedTable)],
    notices: [
      ...prepared.notices,
      ...resolution.notices,
      ...unused.map(({ name }) => `The plugin ${name} is listed, and no key chooses it.`),
    ],
    files: gathered.files,
    run,
  }
}

/** `inference = "None"`: as if it were not written. */
function withoutAbsentParts(tree: TableNode, definition: RootDefinition): TableNode {
  let current = tree
  for (const { at, presence } of definition.mounts) {
    const node = presence === 'written' ? nodeAt(tree, at) : undefined
    if (node !== undefined && isNull(node)) current = withNode(current, at, undefined)
  }
  return current
}

function isTable(tree: TableNode, mount: Mount): boolean {
  return nodeAt(tree, mount.at)?.kind === 'table'
}

function seamConflicts(chosen: readonly Chosen[], tree: TableNode): TrilithonError[] {
  const problems: TrilithonError[] = []
  for (const seam of seamsById.values()) {
    const fillers = chosen.filter((one) => one.candidate.manifest.seam === seam.id)
    if (seam.cardinality === 'many' || fillers.length < 2) continue
    const place = fillers[1]?.uses[0]?.path ?? ['plugins']
    problems.push(
      new TrilithonError(
        'SEAM_CONFLICT',
        `${fillers.map(({ candidate }) => candidate.name).join(' and ')} both fill ${seam.id}, which takes one plugin`,
        {
          path: joinPath(place),
          source: sourceAt(tree, place),
          hint: 'Keep one of the two.',
        },
      ),
    )
  }
  return problems
}

interface LoadedPlugin {
  readonly plugin: Omit<ComposedPlugin, 'roles'> | undefined
  readonly values: readonly ClaimedValue[]
  readonly problems: readonly TrilithonError[]
}

async function loadPlugin(chosen: Chosen, mounts: readonly Mount[]): Promise<LoadedPlugin> {
  const { candidate } = chosen
  try {
    const definition = await candidate.load()
    if (definition.fills.key !== seamsById.get(candidate.manifest.seam)?.key) {
      throw new TrilithonError(
        'PLUGIN_INVALID',
        `${candidate.name} fills version ${definition.fills.version} of ${candidate.manifest.seam}, this runtime has version ${seamsById.get(candidate.manifest.seam)?.version}`,
        {
          path: candidate.name,
          hint: 'Install versions of plugin and runtime that belong together.',
        },
      )
    }
    const { config, uses, values, problems } = parsePluginConfig(chosen, definition, mounts)
    return { plugin: { definition, candidate, config, uses }, values, problems }
  } catch (error) {
    if (!TrilithonError.is(error)) throw error
    return { plugin: undefined, values: [], problems: [error] }
  }
}

function runFacts(
  roles: RunFacts['roles'],
  workingDirectory: string,
  resolved: Composition['resolved'],
  mounts: readonly Mount[],
): RunFacts {
  const byRole = Object.fromEntries(mounts.flatMap((mount) => (mount.role === undefined ? [] : [[mount.role, resolved[mount.root.name]]])))
  const profile = mounts.map((mount) => resolved[mount.root.name]?.numerics_profile).find((value) => typeof value === 'string')
  return { roles, workingDirectory, numericsProfile: (profile as string | undefined) ?? 'fp32', resolved: byRole }
}
