import { resolve } from 'node:path'
import type { Logger } from '@trilithon/core'
import { createReporter, type PlainError, type Reporter, type ViewOutput } from '@trilithon/monitor'
import { openRolloutReceiver, type RolloutReceiver } from '@trilithon/transport'
import { BenchReport } from '../run/bench-report.ts'
import { knownError } from '../run/known-error.ts'
import { runTrainingThread, type ThreadEnd } from '../run/training-thread.ts'
import { BatchFeeder } from './batch-feeder.ts'
import type { RlBatch, RlEvent } from './rl-event.ts'
import { firstStepOf, type RlSetup, rlFolders } from './rl-setup.ts'

export interface RlStartOptions {
  readonly setup: RlSetup
  readonly output: ViewOutput
  readonly log: Logger
  /** Ends the run in order: the step that is under way is dropped, a checkpoint that is due is written. */
  readonly signal: AbortSignal
}

/**
 * The trainer of a run, in a thread of its own; this one receives batches, writes metrics and tells what happens. Resolves when the thread has ended, to
 * whether it was interrupted.
 */
export async function runRl({ setup, output, log, signal }: RlStartOptions): Promise<'done' | 'interrupted'> {
  const { config } = setup
  const folders = rlFolders(setup)
  const firstStep = firstStepOf(setup)
  const reporter = createReporter({ role: 'trainer', file: folders.metrics, output, log, json: config.log.json_logging, firstStep })
  const bench = config.bench === null ? null : new BenchReport()
  let feeder: BatchFeeder | undefined
  let receiver: RolloutReceiver | undefined
  try {
    // Before the model is loaded: a port that is taken is said at once, and batches come meanwhile.
    if (config.data.fake === null)
      receiver = await openRolloutReceiver({ transport: config.rollout_transport, rollouts: folders.rollouts, firstStep, log })
    const end = await runTrainingThread<RlEvent, RlBatch>({
      entry: new URL('./rl-worker.js', import.meta.url),
      profile: config.numerics_profile,
      setup,
      signal,
      onEvent(event, thread) {
        if (event.kind === 'waiting' && receiver !== undefined) {
          feeder ??= new BatchFeeder({ receiver, signal, deliver: (batch) => thread.post(batch), fail: thread.fail })
          feeder.want()
        }
        if (event.kind === 'step') bench?.take(event)
        tell(reporter, log, event)
      },
    })
    if (bench !== null && end === 'done') {
      if (config.bench?.output_json) bench.write(resolve(setup.workingDirectory, config.bench.output_json))
      log.info('measured', bench.values())
    }
    if (end === 'done') reporter.report({ kind: 'ended', role: 'trainer' })
    return end
  } catch (error) {
    reporter.report({ kind: 'failed', role: 'trainer', error: knownError(error).toJSON() as unknown as PlainError })
    throw error
  } finally {
    feeder?.close()
    await receiver?.dispose()
    await reporter.close()
  }
}

function tell(reporter: Reporter, log: Logger, event: RlEvent | ThreadEnd): void {
  const role = 'trainer'
  switch (event.kind) {
    case 'started':
      reporter.report({
        kind: 'ready',
        role,
        detail: `version ${event.step}: ${event.parameters} parameters, ${event.trainable} of them trained`,
      })
      return
    case 'waiting':
      reporter.report({ kind: 'status', role, state: 'waiting for a batch', values: { step: event.step } })
      return
    case 'training':
      reporter.report({ kind: 'status', role, state: 'training', values: { step: event.step } })
      return
    case 'step':
      reporter.report({ kind: 'step', role, step: event.step, values: event.metrics })
      return
    case 'skipped':
      log.warn('step skipped', { step: event.step, reason: event.reason, samples: event.samples, path: event.path })
      return
    case 'published':
      log.debug('weights published', { version: event.version, seconds: event.seconds })
      return
    case 'saving':
      // A launcher gives a role that saves the time that it takes.
      reporter.report({ kind: 'status', role, state: 'saving a checkpoint', values: { step: event.step } })
      return
    case 'saved':
      log.info('checkpoint saved', { step: event.step, path: event.path, seconds: event.seconds })
      return
    case 'ended':
      log.debug('training thread ended', { isInterrupted: event.isInterrupted })
  }
}
