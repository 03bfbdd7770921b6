/**
 * The `trilithon` command as a function, so that a test or another program can call it.
 *
 * @module
 */
export type { CommandLineHost } from './host.ts'
export { runCommandLine } from './run-command-line.ts'
