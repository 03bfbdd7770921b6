/**
 * Environments: the configuration of one and of the stand-alone server, and the task reverse-text. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/env-server-root.ts'
export * from './configuration/environment-table.ts'
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
