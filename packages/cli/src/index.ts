/**
 * The `trilithon` command as a function, so that a test or another program can call it.
 *
 * @module
 */
export type { CommandLineHost } from './host.ts'
export { type PluginPlan, type PluginRequest, planPlugin } from './new-plugin/plan-plugin.ts'
export { runCommandLine } from './run-command-line.ts'
