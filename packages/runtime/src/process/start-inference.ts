import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { invariant, KVStore, type Logger } from '@trilithon/core'
import type { InferenceSetup, Usage } from '@trilithon/inference'
import type { InferenceConfiguration } from '@trilithon/inference/configuration'
import { createReporter, type Reporter } from '@trilithon/monitor'
import type { Composition } from '../compose/composition.ts'
import { createPlugins } from '../create-plugins.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'
import { threadsVariable } from './rl/divide-cores.ts'
import type { RolePlan } from './rl/launcher.ts'
import { createLocalLauncher } from './rl/local-launcher.ts'
import { roleVariable } from './rl/role-process.ts'
import { runTraining } from './run-training.ts'
import type { StartOptions } from './start-options.ts'

/** The engine ends what it computes within a step. */
const disposeTimeoutMs = 5000
/** Reading a model takes as long as its disk does. */
const readyTimeoutMs = 1_800_000
const refreshMs = 250

interface EngineContext extends StartOptions {
  readonly composition: Composition
  readonly setup: InferenceSetup
  readonly role: string
  readonly log: Logger
  readonly reporter: Reporter
}

/**
 * Serves the model of a composition of the root `inference`: one engine in this process, or several as processes of their own on neighbouring ports. Resolves to
 * how it ended; throws what is wrong before anything starts.
 */
export async function startInference(composition: Composition, options: StartOptions): Promise<LifecycleResult> {
  const config = composition.resolved.inference as InferenceConfiguration | undefined
  invariant(config !== undefined, 'a composition of inference has a configuration of inference')
  const role = options.environment[roleVariable] ?? 'inference'
  const { level, json_logging: json } = config.log
  const log = await createLogger({ level: logLevelOf(level), json, colors: options.colors, name: role })
  const reporter = createReporter({ role, file: null, output: { write: () => true }, log, json })
  try {
    // Inference brings the native addon; nothing but a start loads it.
    const { prepareInference } = await import('@trilithon/inference')
    const { workingDirectory } = composition.run
    const setup = await prepareInference({ config, workingDirectory, environment: options.environment })
    writeResolved(composition)
    const context = { ...options, composition, setup, role, log, reporter }
    const result = await (setup.ports.length === 1 ? runEngine(context) : runEngines(context))
    // What it failed with is told by whoever ends the process.
    if (result.error === undefined) reporter.report({ kind: 'ended', role })
    return result
  } finally {
    await reporter.close()
  }
}

async function runEngine({ composition, setup, role, log, reporter, output }: EngineContext): Promise<LifecycleResult> {
  const { runInference } = await import('@trilithon/inference')
  const plugins = composition.plugins.filter(({ definition: { fills } }) => fills.thread === 'main' && fills.runsIn.includes('inference'))
  return runLifecycle(
    async ({ signal, onDispose }) => {
      const container = await createPlugins(plugins, { run: composition.run, log, signal })
      onDispose('the plugins', () => container.dispose())
      await runInference({ setup, role, store: container.find(KVStore) ?? null, output, log, reporter, signal, onDispose })
    },
    { log, disposeTimeoutMs },
  )
}

/** Each engine is a process like this one with a port of its own; the death of one ends all. */
async function runEngines(context: EngineContext): Promise<LifecycleResult> {
  const { composition, setup, role, log, reporter, output } = context
  const { stateOf, sumUsage, usageOf, usageValues, UsageView } = await import('@trilithon/inference')
  const { workingDirectory } = composition.run
  const json = setup.config.log.json_logging
  const view = new UsageView({ output, json: json ? log : null })
  const usages = new Map<string, Usage>()
  const ready = new Set<string>()
  const total = () => sumUsage([...usages.values()])
  const timers = [
    setInterval(() => usages.size > 0 && view.refresh(total()), refreshMs),
    setInterval(() => usages.size > 0 && view.line(total()), 1000 * setup.config.log.interval),
  ]
  const urls = setup.ports.map((port) => `http://${setup.host.includes(':') ? `[${setup.host}]` : setup.host}:${port}`)
  try {
    return await runTraining(
      (signal) =>
        createLocalLauncher().launch({
          ...{ roles: planEngines(context), workingDirectory, signal, readyTimeoutMs },
          onEvent(name, event) {
            if (event.kind === 'status') {
              usages.set(name, usageOf(event.values))
              const usage = total()
              reporter.report({ kind: 'status', role, state: stateOf(usage), values: usageValues(usage) })
            }
            if (event.kind !== 'ready') return
            ready.add(name)
            view.print(`${name} serves at ${event.url}`)
            if (ready.size === urls.length) reporter.report({ kind: 'ready', role, url: urls[0], detail: urls.join(' ') })
          },
          onEnd: (name) => view.print(`${name} has ended`),
        }),
      view.around(log),
    )
  } finally {
    for (const timer of timers) clearInterval(timer)
    view.close()
  }
}

function planEngines({ setup, environment, commandLine }: EngineContext): RolePlan[] {
  invariant(commandLine !== undefined, 'who starts several engines says how one is started')
  const { outputFolder, ports } = setup
  const logs = join(outputFolder, 'logs')
  mkdirSync(logs, { recursive: true })
  const threads = Math.max(1, Math.floor(availableParallelism() / ports.length))
  return ports.map((port, index) => {
    const flags = [`--server.port=${port}`, '--parallel.dp=1', `--output-dir=${outputFolder}`]
    return {
      name: `inference-${index}`,
      purpose: 'work',
      command: [...commandLine, 'inference', '@', join(outputFolder, 'configs', 'inference.toml'), ...flags],
      // Who has set the number of threads wants it everywhere.
      environment: { [threadsVariable]: String(threads), ...environment },
      log: join(logs, `inference-${index}.log`),
    }
  })
}
