/**
 * Environments: the SDK to write one, the worker processes that run them, the pool that an orchestrator talks to, the stand-alone server, and the
 * built-in environments. Importing it has no effect.
 *
 * @module
 */

export {
  type AlphabetSortOptions,
  alphabetSortEnvironment,
  alphabetSortTask,
  sortedWords,
  wordsInPlace,
} from './alphabet-sort/alphabet-sort.ts'
export { type AlphabetSortRow, type AlphabetSortRowsOptions, alphabetSortRows } from './alphabet-sort/alphabet-sort-rows.ts'
export * from './configuration/env-server-root.ts'
export * from './configuration/environment-table.ts'
export * from './define/define-environment.ts'
export { type PlayEpisodesOptions, type PlayedEpisode, playEpisodes } from './define/play-episodes.ts'
export { builtInEnvironments } from './load/load-environment.ts'
export { createEnvironmentPool } from './pool/create-environment-pool.ts'
export * from './pool/environment-pool.ts'
export type { Random } from './reverse-text/random.ts'
export {
  type ReverseTextOptions,
  type ReverseTextRow,
  type ReverseTextRowsOptions,
  type ReverseTextSplit,
  type ReverseTextTask,
  reverseText,
  reverseTextAlphabet,
  reverseTextPrompt,
  reverseTextReward,
  reverseTextRows,
  reverseTextSeparator,
  reverseTextTask,
} from './reverse-text/reverse-text.ts'
export { reverseTextEnvironment } from './reverse-text/reverse-text-environment.ts'
export {
  defaultServerAddress,
  type EnvironmentServer,
  type EnvironmentServerOptions,
  startEnvironmentServer,
} from './server/environment-server.ts'
export * from './turn-renderer.ts'
export { runEnvironmentWorker } from './worker/run-environment-worker.ts'
