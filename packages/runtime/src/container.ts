// The one file that knows the DI container (style.md): tokens only, no decorators, one child container per run.
import 'reflect-metadata'
import { type Disposable, type Seam, TrilithonError } from '@trilithon/core'
import { container as root } from 'tsyringe'

/** Holds what the plugins of one run have created, by the key of their seam. */
export interface RunContainer {
  /** Registers a created filling. A second one for a seam of one plugin is `SEAM_CONFLICT`. */
  add<T extends Disposable>(seam: Seam<T>, filling: T, plugin: string): void
  /** The filling of a seam of one plugin, or undefined. */
  find<T extends Disposable>(seam: Seam<T>): T | undefined
  /** All fillings of a seam of many, in the order of creation. */
  all<T extends Disposable>(seam: Seam<T>): readonly T[]
  /** The filling of a seam of one plugin. Throws `SEAM_UNFILLED`. */
  resolve<T extends Disposable>(seam: Seam<T>): T
  /**
   * Disposes of everything, newest first, each once; a failing one does not keep the others. Rejects with `PLUGIN_FAILED` after all are
   * done, when any failed.
   */
  dispose(): Promise<void>
}

export function createRunContainer(): RunContainer {
  const container = root.createChildContainer()
  const created: { readonly plugin: string; readonly filling: Disposable }[] = []
  let disposed: Promise<void> | undefined

  const find = <T extends Disposable>(seam: Seam<T>): T | undefined =>
    // tsyringe would look into the global container too; nothing is ever registered there.
    container.isRegistered(seam.key) ? container.resolve<T>(seam.key) : undefined

  return {
    add(seam, filling, plugin) {
      if (seam.cardinality === 'one' && container.isRegistered(seam.key)) {
        throw new TrilithonError('SEAM_CONFLICT', `${plugin} fills ${seam.id}, which is filled already`, {
          path: seam.id,
          hint: 'Keep one of the plugins.',
        })
      }
      container.register(seam.key, { useValue: filling })
      created.push({ plugin, filling })
    },
    find,
    all: <T extends Disposable>(seam: Seam<T>) => (container.isRegistered(seam.key) ? container.resolveAll<T>(seam.key) : []),
    resolve(seam) {
      const filling = find(seam)
      if (filling === undefined) {
        throw new TrilithonError('SEAM_UNFILLED', `no plugin fills the seam ${seam.id}`, {
          path: seam.id,
          hint: `Choose one: trilithon plugins --seam ${seam.id}`,
        })
      }
      return filling
    },
    dispose() {
      disposed ??= disposeNewestFirst(created)
      return disposed
    },
  }
}

async function disposeNewestFirst(created: readonly { readonly plugin: string; readonly filling: Disposable }[]): Promise<void> {
  const failures: TrilithonError[] = []
  for (const { plugin, filling } of [...created].reverse()) {
    try {
      await filling.dispose()
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      failures.push(new TrilithonError('PLUGIN_FAILED', `${plugin} failed while it was disposed of: ${reason}`, { path: plugin, cause }))
    }
  }
  const [first] = failures
  if (first !== undefined) {
    throw failures.length === 1
      ? first
      : new TrilithonError('PLUGIN_FAILED', `${failures.length} plugins failed while they were disposed of`, { problems: failures })
  }
}
