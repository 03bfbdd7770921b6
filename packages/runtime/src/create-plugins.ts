import { type Logger, type RunFacts, TrilithonError } from '@trilithon/core'
import type { ComposedPlugin } from './compose/composition.ts'
import { needsOf } from './compose/order-plugins.ts'
import type { RunContainer } from './container.ts'

export interface CreatePluginsOptions {
  readonly run: RunFacts
  readonly log: Logger
  readonly signal: AbortSignal
}

/**
 * Creates plugins in the given order (see `orderPlugins`) and hands each what it needs. When one fails, those created before it are disposed
 * of and the error is `PLUGIN_FAILED`.
 */
export async function createPlugins(plugins: readonly ComposedPlugin[], options: CreatePluginsOptions): Promise<RunContainer> {
  // A dry run creates nothing, so it does not load the container either.
  const { createRunContainer } = await import('./container.ts')
  const container = createRunContainer()
  for (const { definition, config } of plugins) {
    try {
      const needs: Record<string, unknown> = {}
      for (const { name, seam, required } of needsOf(definition)) {
        const value = seam.cardinality === 'many' ? container.all(seam) : required ? container.resolve(seam) : container.find(seam)
        needs[name] = value
      }
      options.signal.throwIfAborted()
      const log = options.log.child({ plugin: definition.name })
      const filling = await definition.create({ config, run: options.run, needs: needs as never, log, signal: options.signal })
      if (typeof filling?.dispose !== 'function') {
        throw new TrilithonError('PLUGIN_INVALID', `${definition.name} created nothing that can be disposed of`, {
          path: definition.name,
          hint: '`create` returns the filling of the seam, with a `dispose` method.',
        })
      }
      container.add(definition.fills, filling, definition.name)
    } catch (cause) {
      // The first failure is the cause; what disposal adds to it would hide it.
      await container.dispose().catch((error: unknown) => options.log.warn('plugin disposal failed', { error }))
      if (TrilithonError.is(cause) || options.signal.aborted) throw cause
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new TrilithonError('PLUGIN_FAILED', `${definition.name} could not be created: ${reason}`, {
        path: definition.name,
        hint: 'Run with --verbose to see where it failed.',
        cause,
      })
    }
  }
  return container
}
