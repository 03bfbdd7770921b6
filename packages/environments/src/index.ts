/**
 * Environments: the SDK to write one, the worker processes that run them, the pool that an orchestrator talks to, the stand-alone server, and the
 * built-in environments. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/env-server-root.ts'
export * from './configuration/environment-table.ts'
export * from './define/define-environment.ts'
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
export * from './turn-renderer.ts'
