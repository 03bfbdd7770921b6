import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lagOf, type RolloutTransport, type Router, rolloutPorts, type Sample } from '@trilithon/core'
import {
  lastShippedStep,
  latestVersion,
  openRolloutSender,
  openWeights,
  readProgress,
  rolloutFiles,
  rolloutStepFolder,
} from '@trilithon/transport'
import { findProgress } from '../progress/resume.ts'
import { type Clock, systemClock } from '../run/clock.ts'
import { Orchestrator } from '../run/orchestrator.ts'
import type { OrchestratorParts } from '../run/orchestrator-parts.ts'
import { fraction } from '../source/random.ts'
import { createRunFiles } from '../start/run-files.ts'
import { FakeEngines, FakePool, fakeParts } from './fake-world.ts'
import { type CreateMatrixTrainer, matrixTransport } from './file-trainer.ts'

export interface MatrixCase {
  readonly steps: number
  readonly level: number
  readonly bound: number
  readonly isResume: boolean
  readonly transport: RolloutTransport['type']
  /** Milliseconds of a call to an engine. */
  readonly engineMs?: number
}

const bounds = [0, 1, 8] as const
const three = [0, 1, 2] as const

/** Batches as files: 3 numbers of steps x 3 levels x 3 bounds x fresh or resumed. Over sockets: nine of these, in which every pair of values of two columns occurs. */
export const matrixCases: readonly MatrixCase[] = [
  ...three.flatMap((steps) =>
    three.flatMap((level) =>
      bounds.flatMap((bound) =>
        [false, true].map((isResume) => ({ steps: steps + 1, level, bound, isResume, transport: 'filesystem' as const })),
      ),
    ),
  ),
  ...three.flatMap((steps) =>
    three.map((level) => ({
      ...{ steps: steps + 1, level, bound: bounds[(steps + level) % 3] ?? 0, isResume: (steps + 2 * level) % 3 > 0 },
      transport: 'zmq' as const,
    })),
  ),
]

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
 * Runs orchestrator and trainer as objects over the files of one folder. A resumed case first ships two batches, of which the trainer trains one; then all that is
 * not on the disk is lost, and both go on from the checkpoint behind that batch.
 */
export async function runMatrixCase(
  one: MatrixCase,
  createTrainer: CreateMatrixTrainer,
  createRouter: () => Router,
): Promise<MatrixResult> {
  const run = mkdtempSync(join(tmpdir(), 'boundary-'))
  const folder = join(run, 'run_default')
  try {
    const first = one.isResume
      ? await runBoth({ ...one, isResume: false }, { run, folder, steps: 2, from: 0, to: 1, createTrainer, createRouter })
      : null
    // The weights went with the trainer that published them.
    rmSync(join(folder, 'broadcasts'), { recursive: true, force: true })
    const from = one.isResume ? 1 : 0
    const to = from + one.steps
    const { trained: rest, engines } = await runBoth(one, { run, folder, steps: to, from, to, createTrainer, createRouter })
    const trained = [...(first?.trained ?? []), ...rest]
    return {
      trained,
      lags: trained.flatMap(({ step, samples }) => samples.map(({ versions, mask }) => lagOf(step, versions, mask))),
      version: latestVersion(join(folder, 'broadcasts')),
      pausedAtEnd: engines.isPaused,
    }
  } finally {
    rmSync(run, { recursive: true })
  }
}

/** Two batches may wait for the trainer, so that the orchestrator is held at times. */
async function transportOf({ transport }: MatrixCase): Promise<RolloutTransport> {
  return transport === 'filesystem' ? { type: transport } : { type: transport, host: '127.0.0.1', port: await freePort(), hwm: 2 }
}

/** Free now, with the one that the transport takes beside it. */
async function freePort(): Promise<number> {
  const isFree = (port: number) =>
    new Promise<boolean>((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(false))
      server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
    })
  for (;;) {
    const port = 11_000 + Math.floor(Math.random() * 20_000)
    if ((await Promise.all(rolloutPorts(port).map(isFree))).every(Boolean)) return port
  }
}

interface BothOptions {
  readonly run: string
  readonly folder: string
  /** Of the orchestrator. */
  readonly steps: number
  /** Steps of the trainer. */
  readonly from: number
  readonly to: number
  readonly createTrainer: CreateMatrixTrainer
  readonly createRouter: () => Router
}

async function runBoth(one: MatrixCase, { run, folder, steps: maxSteps, from: firstStep, to, createTrainer, createRouter }: BothOptions) {
  const clock: Clock = systemClock
  const engines = new FakeEngines(clock, firstStep)
  // Reading a version begins a while after it is told of, and the trainer does not wait for it.
  engines.callMs = one.engineMs ?? 3
  engines.opens = (path) => openWeights(path).release()
  const pool = new FakePool({
    ...{ clock, engines, tasks: 64 },
    episode: ({ taskIndex, rolloutId }) => ({
      ms: episodeMs(3, taskIndex * 4 + Number(rolloutId.split('.')[1])),
      ...{ turns: [2, 1], reward: Number(rolloutId.split('.')[1]) },
    }),
  })
  const { level: maxAsyncLevel, bound: maxOffPolicySteps, isResume } = one
  const checkpoints = join(folder, 'checkpoints')
  const rollouts = join(folder, 'rollouts')
  const transport = await transportOf(one)
  const sender = await openRolloutSender({ transport, rollouts, firstStep })
  const between = matrixTransport(folder, sender)
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
      ...{ trainer: between, router: createRouter() },
    }),
    ...between,
    files: createRunFiles(folder, {
      interval: 1,
      resume_step: null,
      wait_for_weights_timeout: null,
      keep_last: null,
      keep_interval: null,
      skip_progress: false,
    }),
    ...{ progress: resumed?.progress ?? null, isResume },
  }
  const trainer = createTrainer({ run, folder, firstStep, maxSteps: to, transport })
  const controller = new AbortController()
  const end = (error: unknown) => {
    controller.abort()
    throw error
  }
  try {
    await Promise.all([trainer.run(controller.signal).catch(end), new Orchestrator(parts).run(controller.signal).catch(end)])
  } finally {
    between.holds.dispose()
    await sender.dispose()
  }
  return { trained: trainer.trained, engines }
}
