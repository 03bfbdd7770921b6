import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lagOf, type Sample } from '@trilithon/core'
import { lastShippedStep, latestVersion, readProgress, rolloutFiles, rolloutStepFolder } from '@trilithon/transport'
import { findProgress } from '../progress/resume.ts'
import { type Clock, systemClock } from '../run/clock.ts'
import { Orchestrator } from '../run/orchestrator.ts'
import type { OrchestratorParts } from '../run/orchestrator-parts.ts'
import { fraction } from '../source/random.ts'
import { createRunFiles } from '../start/run-files.ts'
import { FakeEngines, FakePool, fakeParts } from './fake-world.ts'
import { type CreateMatrixTrainer, fileTransport } from './file-trainer.ts'

export interface MatrixCase {
  readonly steps: number
  readonly level: number
  readonly bound: number
  readonly isResume: boolean
}

/** 3 numbers of steps x 3 levels x 3 bounds x fresh or resumed. */
export const matrixCases: readonly MatrixCase[] = [1, 2, 3].flatMap((steps) =>
  [0, 1, 2].flatMap((level) => [0, 1, 8].flatMap((bound) => [false, true].map((isResume) => ({ steps, level, bound, isResume })))),
)

export interface MatrixResult {
  /** Samples by the step that they were trained in, over both runs. */
  readonly trained: readonly { readonly step: number; readonly samples: readonly Sample[] }[]
  readonly lags: readonly number[]
  /** Of the last version in the run folder. */
  readonly version: number | null
  readonly pausedAtEnd: boolean
}

/** Time of an episode of a task, 1 to 8 ms. */
const episodeMs = (seed: number, index: number) => 1 + 7 * fraction(seed, index) ** 3

/**
 * Runs orchestrator and trainer as objects over the files of one folder. A resumed case first runs two steps, loses everything that is not on the disk, and goes on
 * from the trainer's checkpoint behind the first of them.
 */
export async function runMatrixCase(one: MatrixCase, createTrainer: CreateMatrixTrainer): Promise<MatrixResult> {
  const folder = mkdtempSync(join(tmpdir(), 'boundary-'))
  try {
    const trained: { step: number; samples: readonly Sample[] }[] = []
    const firstStep = one.isResume ? 1 : 0
    if (one.isResume) {
      const first = await runBoth({ ...one, steps: 2, isResume: false }, folder, 0, createTrainer)
      trained.push(...first.trained.filter(({ step }) => step < firstStep))
      // A batch of the run before that is still to be trained stays; the weights went with the trainer.
      rmSync(join(folder, 'broadcasts'), { recursive: true })
    }
    const { trainer, engines } = await runBoth({ ...one, steps: firstStep + one.steps }, folder, firstStep, createTrainer).then((both) => ({
      trainer: both,
      engines: both.engines,
    }))
    trained.push(...trainer.trained)
    return {
      trained,
      lags: trained.flatMap(({ step, samples }) => samples.map(({ versions, mask }) => lagOf(step, versions, mask))),
      version: latestVersion(join(folder, 'broadcasts')),
      pausedAtEnd: engines.isPaused,
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function runBoth(one: MatrixCase, folder: string, firstStep: number, createTrainer: CreateMatrixTrainer) {
  const clock: Clock = systemClock
  const engines = new FakeEngines(clock, firstStep)
  const pool = new FakePool({
    ...{ clock, engines, tasks: 64 },
    episode: ({ taskIndex, rolloutId }) => ({
      ms: episodeMs(3, taskIndex * 4 + Number(rolloutId.split('.')[1])),
      ...{ turns: [2, 1], reward: Number(rolloutId.split('.')[1]) },
    }),
  })
  const { steps: maxSteps, level: maxAsyncLevel, bound: maxOffPolicySteps, isResume } = one
  const transport = fileTransport(folder)
  const checkpoints = join(folder, 'checkpoints')
  const rollouts = join(folder, 'rollouts')
  const resumed = !isResume
    ? null
    : findProgress({
        ...{ checkpoints, resumeStep: firstStep },
        shipped: {
          lastShipped: () => lastShippedStep(rollouts),
          has: (step) => existsSync(join(rolloutStepFolder(rollouts, step), rolloutFiles.batch)),
          progressOf: (step) => readProgress(rollouts, step),
        },
      })
  const parts: OrchestratorParts = {
    ...fakeParts({
      ...{ clock, engines, pools: [pool], groupSize: 2 },
      settings: { maxSteps, maxAsyncLevel, maxOffPolicySteps, batchSize: 4, maxInflight: 6, checkpointInterval: 1 },
      trainer: transport,
    }),
    ...transport,
    files: createRunFiles(folder, { interval: 1, resume_step: null, wait_for_weights_timeout: null, keep_last: null, keep_interval: null, skip_progress: false }),
    ...{ progress: resumed?.progress ?? null, isResume },
  }
  const trainer = createTrainer({ folder, firstStep, maxSteps })
  const controller = new AbortController()
  const end = (error: unknown) => {
    controller.abort()
    throw error
  }
  await Promise.all([
    trainer.run(controller.signal).catch(end),
    new Orchestrator(parts).run(controller.signal).catch(end),
  ])
  return { trained: trainer.trained, engines }
}
