import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Clock } from '../run/clock.ts'
import { runTogether } from '../run/run-together.ts'
import { Wake } from '../run/wake.ts'
import { type EvalEnvironment, type EvalResult, EvalRuns } from './eval-runs.ts'

export interface EvaluationOptions {
  readonly environments: readonly EvalEnvironment[]
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Step that results are told under. */
  readonly step: number
  /** Makes a dispatcher that takes its groups from here and trains nothing. */
  readonly createDispatcher: (nextEval: EvalRuns['next']) => Dispatcher
  /** Looks after the episodes of a dispatcher. */
  readonly watch: (dispatcher: Dispatcher, signal: AbortSignal) => Promise<void>
}

/** Evaluates the version that serves, and nothing else. Resolves to a result per environment; fewer where the signal aborted. */
export async function runEvaluation({
  environments,
  clock,
  signal,
  step,
  createDispatcher,
  watch,
}: EvaluationOptions): Promise<EvalResult[]> {
  const results: EvalResult[] = []
  const wake = new Wake()
  const runs = new EvalRuns({
    environments,
    clock,
    onDone: (result) => {
      results.push(result)
      wake.wake()
    },
  })
  runs.fire(step)
  const dispatcher = createDispatcher(() => runs.next())
  await runTogether(
    async (inner) => {
      inner.addEventListener('abort', wake.wake, { once: true })
      while (!runs.isIdle && !inner.aborted) await wake.next()
    },
    { dispatcher: (inner) => dispatcher.run(inner), 'watch of episodes': (inner) => watch(dispatcher, inner) },
    signal,
  )
  return results
}
