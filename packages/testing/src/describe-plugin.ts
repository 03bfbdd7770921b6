import type { AnyPlugin } from '@trilithon/core'
import { pluginCases } from './plugin-cases.ts'
import { type DescribePluginOptions, openPluginContext } from './plugin-context.ts'
import { describeSuite } from './suite.ts'

/**
 * Holds a plugin's package to what every plugin promises: name, manifest, strict and described schemas, no work at import, create and dispose.
 * The contract of its seam has a suite of its own.
 *
 *     describePlugin(definition, { packageRoot: new URL('..', import.meta.url) })
 */
export function describePlugin(definition: AnyPlugin, options: DescribePluginOptions): void {
  describeSuite(`plugin ${definition.name}`, pluginCases, async () => openPluginContext(definition, options))
}
