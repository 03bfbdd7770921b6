import {
  type Capabilities,
  type CheckContext,
  type CheckProblem,
  type Disposable,
  type RunFacts,
  type Seam,
  TrilithonError,
} from '@trilithon/core'
import { joinPath, sourceAt, splitPath, type TableNode } from '../config/tree.ts'
import type { ComposedPlugin } from './composition.ts'
import { type Mount, placeOf } from './mount.ts'

/** Answers why a native kernel cannot run here, or nothing. */
export type KernelReason = (kernel: string) => string | undefined

/** Asks every plugin what is wrong with its configuration, and whether the kernels that it needs are here. */
export function checkPlugins(
  plugins: readonly ComposedPlugin[],
  run: RunFacts,
  mounts: readonly Mount[],
  tree: TableNode,
  kernelReason: KernelReason,
): TrilithonError[] {
  const problems: TrilithonError[] = []
  const peer = (seam: Seam<Disposable>): Capabilities | undefined => {
    const filler = plugins.find(({ definition }) => definition.fills.key === seam.key)
    return filler === undefined ? undefined : (filler.definition.capabilities ?? {})
  }
  for (const { definition, config, uses } of plugins) {
    for (const kernel of definition.kernels ?? []) {
      const reason = kernelReason(kernel)
      if (reason !== undefined) {
        problems.push(
          new TrilithonError('KERNEL_UNAVAILABLE', `${definition.name} needs the kernel ${kernel}: ${reason}`, {
            path: definition.name,
            hint: 'See `trilithon doctor` for what this machine has.',
          }),
        )
      }
    }
    const at = uses[0]?.path ?? []
    for (const problem of runCheck(definition.name, () => definition.check?.({ config, run, peer } as CheckContext<never>))) {
      if (TrilithonError.is(problem)) {
        problems.push(problem)
        continue
      }
      const { message, path, hint } = typeof problem === 'string' ? { message: problem } : problem
      const place = path === undefined ? at : (placeOf(mounts, path)?.path ?? splitPath(path))
      problems.push(
        new TrilithonError('PLUGIN_CHECK_FAILED', message, {
          path: joinPath(place),
          source: sourceAt(tree, place),
          hint: hint ?? `Change the configuration of ${definition.name}.`,
          details: { plugin: definition.name },
        }),
      )
    }
  }
  return problems
}

function runCheck(name: string, check: () => Iterable<CheckProblem> | undefined): (CheckProblem | TrilithonError)[] {
  try {
    return [...(check() ?? [])]
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return [
      new TrilithonError('PLUGIN_CHECK_FAILED', `the check of ${name} failed itself: ${reason}`, {
        path: name,
        hint: 'Run with --verbose to see where; a check yields sentences and does not throw.',
        cause,
      }),
    ]
  }
}
