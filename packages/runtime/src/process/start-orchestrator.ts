import { invariant, Router } from '@trilithon/core'
import type { OrchestratorConfiguration } from '@trilithon/orchestrator/configuration'
import type { Composition } from '../compose/composition.ts'
import { createPlugins } from '../create-plugins.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { awaitRun } from './await-run.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'
import type { StartOptions } from './start-options.ts'

/** Episodes in flight are cancelled, and a weight update that is under way is finished. */
const disposeTimeoutMs = 30_000

/** Runs the orchestrator of a composition of the root `orchestrator`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startOrchestrator(composition: Composition, { environment, output, colors }: StartOptions): Promise<LifecycleResult> {
  const config = composition.resolved.orchestrator as OrchestratorConfiguration | undefined
  invariant(config !== undefined, 'a composition of orchestrator has a configuration of orchestrator')
  // Sockets and environments are loaded by a start alone.
  const { prepareOrchestrator, runOrchestrator } = await import('@trilithon/orchestrator')
  const setup = await prepareOrchestrator({ config, workingDirectory: composition.run.workingDirectory, environment })
  writeResolved(composition)
  const { level, json_logging: json } = config.log
  const log = await createLogger({ level: logLevelOf(level), json, colors, name: 'orchestrator' })
  const plugins = composition.plugins.filter(
    ({ definition: { fills } }) => fills.thread === 'main' && fills.runsIn.includes('orchestrator'),
  )
  return runLifecycle(
    async (context) => {
      const { signal, onDispose } = context
      const container = await createPlugins(plugins, { run: composition.run, log, signal })
      onDispose('the plugins', () => container.dispose())
      await awaitRun(context, 'the orchestrator', runOrchestrator({ setup, router: container.resolve(Router), output, log, signal }))
    },
    { log, disposeTimeoutMs },
  )
}
