/**
 * Engines, environments, a trainer and a clock that a test owns, around the real orchestrator. Importing it has no effect.
 *
 * @module
 */
export { type MatrixCase, type MatrixResult, matrixCases, runMatrixCase } from './boundary-matrix.ts'
export { createWorld, groupOf, lagIn, numberOf, stepEvents, type WorldOptions } from './create-world.ts'
export {
  FakeEngines,
  type FakeEpisode,
  type FakePartsOptions,
  FakePool,
  type FakePoolOptions,
  FakeTrainer,
  fakeParts,
  fakeSettings,
} from './fake-world.ts'
export {
  type CreateMatrixTrainer,
  type FileBatch,
  fakeFileTrainer,
  type MatrixTrainer,
  type MatrixTrainerOptions,
  matrixTransport,
  takeBatches,
} from './file-trainer.ts'
export { type LoadedWorldOptions, type LoadedWorldResult, runLoadedWorld } from './loaded-world.ts'
export { type RunStepsOptions, runSteps } from './run-steps.ts'
export { VirtualClock } from './virtual-clock.ts'
