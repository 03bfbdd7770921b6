import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { TrilithonError } from '@trilithon/core'
import type { Composition } from '../compose/composition.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { awaitRun } from './await-run.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'
import type { Launcher } from './rl/launcher.ts'
import { createLocalLauncher } from './rl/local-launcher.ts'
import { type CommandLine, planRoles } from './rl/plan-roles.ts'
import { prepareRun } from './rl/prepare-run.ts'
import { rlConfigurationOf } from './rl/rl-configuration-of.ts'
import { RlView } from './rl/rl-view.ts'
import { RunRecorder } from './rl/run-recorder.ts'
import { RunState } from './rl/run-state.ts'
import type { StartOptions } from './start-options.ts'

export interface RlStartOptions extends StartOptions {
  /** What starts a role; its name and its configuration are added. */
  readonly commandLine: CommandLine
  /** The same composition with more flags. */
  readonly recompose: (flags: readonly string[]) => Promise<Composition>
  readonly launcher?: Launcher
  /** What is known to stop the run already; it is told with what is found here. */
  readonly problems?: readonly TrilithonError[]
}

/** Time for the roles to end in order; the launcher kills what takes longer, unless it saves. */
const disposeTimeoutMs = 600_000

/**
 * Runs reinforcement learning from a composition of the root `rl`: inference, orchestrator and trainer as processes. Resolves to how it ended; throws what is wrong
 * before anything starts.
 */
export async function startRl(composition: Composition, options: RlStartOptions): Promise<LifecycleResult> {
  const { environment, colors, problems = [] } = options
  const { workingDirectory } = composition.run
  const { folder, resumeStep } = await prepareRun({ config: rlConfigurationOf(composition), workingDirectory, environment, problems })
  // -1 is decided once, here: every role goes on from the same step.
  const final = resumeStep === null ? composition : await options.recompose(resumeFlags(composition, resumeStep))
  const config = rlConfigurationOf(final)
  writeResolved(final)
  const { level, json_logging: json } = config.log
  const log = await createLogger({ level: logLevelOf(level ?? 'info'), json, colors, name: 'launcher' })
  const roles = planRoles({ config, folder, environment, commandLine: options.commandLine, cores: availableParallelism() })
  const maxSteps = config.trainer.max_steps
  const names = roles.map(({ name }) => name)

  return runLifecycle(
    async (context) => {
      const { signal } = context
      const now = () => performance.now()
      const state = new RunState(names, maxSteps, now())
      const firstStep = config.trainer.ckpt?.skip_progress === true ? 0 : (resumeStep ?? 0)
      const recorder = new RunRecorder({ path: join(folder, 'metrics.jsonl'), state, firstStep })
      const view = new RlView({ output: options.output, json: json ? log : null, state })
      view.print(
        `${resumeStep === null ? 'starting' : `going on behind step ${resumeStep}`}: ${names.join(', ')}; logs in ${join(folder, 'logs')}`,
        'INFO',
      )
      // Ends the roles like a signal; it is what the run fails with.
      const lost = new AbortController()
      let failure: unknown
      const run = (options.launcher ?? createLocalLauncher())
        .launch({
          roles,
          workingDirectory,
          signal: AbortSignal.any([signal, lost.signal]),
          readyTimeoutMs: 1000 * config.orchestrator.student.client.wait_for_ready_timeout,
          onEvent(name, event) {
            try {
              state.take(name, event, now())
              recorder.take(name, event, now())
              view.take(name, event)
            } catch (error) {
              failure ??= error
              lost.abort()
            }
          },
          restarts: config.max_inference_restarts,
          onRestart(name, restart) {
            state.restart(name)
            view.roleRestarts(name, restart)
          },
          onStart: (name, pid) => view.roleStarted(name, pid),
          onEnd: (name, end) => view.roleEnded(name, end),
        })
        .finally(() => view.close())
      const end = run.then(
        () => {
          if (failure !== undefined) throw failure
        },
        (error) => {
          throw failure ?? error
        },
      )
      await awaitRun(context, 'the roles', end)
      if (!signal.aborted)
        view.print(`done: ${state.trained === undefined ? 'no step' : `${state.trained.step + 1} steps`}, ${folder}`, 'INFO')
    },
    { log, disposeTimeoutMs },
  )
}

/** Flags that set the step wherever it is written, so that no two of them differ. */
function resumeFlags(composition: Composition, step: number): string[] {
  const shared = (composition.resolved.rl?.ckpt ?? null) as { readonly resume_step: number | null } | null
  const tables = ['trainer.ckpt', 'orchestrator.ckpt', ...(shared?.resume_step == null ? [] : ['ckpt'])]
  return tables.map((table) => `--${table}.resume-step=${step}`)
}
