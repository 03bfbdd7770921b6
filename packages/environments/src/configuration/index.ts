/**
 * The configuration of environments: the root `env-server`. An entrance of its own, so that a configuration is composed without loading what it configures.
 *
 * @module
 */
export { type EnvironmentServerConfiguration, envServerRoot } from './env-server-root.ts'
export { environmentFileProblem } from './environment-file.ts'
export { environmentFileName, environmentName, type NamedEnvironment, unsafeEnvironmentName } from './environment-name.ts'
export { EnvironmentTable, EnvironmentWorkers } from './environment-table.ts'
export { environmentReadKeys } from './read-keys.ts'
