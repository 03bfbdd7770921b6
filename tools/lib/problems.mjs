// @ts-check
/** What a check finds, and how every check of the project reports it. */

/**
 * @typedef {object} Problem
 * @property {string} file relative to the root of the project
 * @property {number} [line] 1-based
 * @property {string} rule name of the broken rule
 * @property {string} message what is wrong, with values
 * @property {string} hint what to do: one imperative sentence
 */

/** `file:line [rule] what is wrong. What to do.` @param {Problem} problem */
export function formatProblem({ file, line, rule, message, hint }) {
  return `${file}${line === undefined ? '' : `:${line}`} [${rule}] ${message} ${hint}`
}

/** Ends a check: every problem on standard error and status 1, or one line of what holds. @param {readonly Problem[]} problems @param {string} holds */
export function report(problems, holds) {
  for (const problem of problems) console.error(formatProblem(problem))
  if (problems.length > 0) process.exitCode = 1
  else console.log(holds)
}
