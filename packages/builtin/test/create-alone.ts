import { type Disposable, type PluginDefinition, type RunFacts, silentLogger } from '@trilithon/core'

/** Facts of a run on one machine. */
export const run: RunFacts = {
  roles: ['trainer', 'orchestrator', 'inference'],
  workingDirectory: '/',
  numericsProfile: 'fp32',
  resolved: {},
}

/** Creates what a plugin without keys and needs fills its seam with. */
export async function createAlone<T extends Disposable>(
  definition: PluginDefinition<T, readonly [], Record<never, never>, Record<never, never>>,
): Promise<T> {
  return definition.create({ config: {}, run, needs: {}, log: silentLogger, signal: new AbortController().signal })
}
