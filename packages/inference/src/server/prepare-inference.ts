import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { combineProblems, TrilithonError } from '@trilithon/core'
import { resolveModelFolder } from '@trilithon/models'
import type { InferenceConfiguration } from '../configuration/inference-schema.ts'
import { resolveApiKey } from './authorise.ts'

export interface InferencePlanOptions {
  /** Resolved. */
  readonly config: InferenceConfiguration
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
}

/** Everything that the engines of a configuration need to know, as plain data. */
export interface InferenceSetup {
  readonly config: InferenceConfiguration
  readonly workingDirectory: string
  /** Absolute. */
  readonly outputFolder: string
  readonly modelFolder: string
  readonly host: string
  /** One for each engine process. */
  readonly ports: readonly number[]
  /** That requests must bring; null asks for none. */
  readonly apiKey: string | null
}

/** Only this machine. */
const ownMachine = '127.0.0.1'

/**
 * Looks at what would stop the engines before anything is loaded. Throws `CONFIG_VALUE_INVALID` for a server that others could reach without a key,
 * `MODEL_NOT_FOUND`, `PORT_IN_USE`, or several of them as `CONFIG_INVALID`.
 */
export async function prepareInference({ config, workingDirectory, environment }: InferencePlanOptions): Promise<InferenceSetup> {
  const { server, parallel, model, output_dir, weight_broadcast } = config
  const host = server.host ?? ownMachine
  const ports = Array.from({ length: parallel.dp }, (_, index) => server.port + index)
  const problems: TrilithonError[] = []
  const attempt = <T>(action: () => T): T | undefined => {
    try {
      return action()
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      problems.push(error)
      return undefined
    }
  }
  if ((weight_broadcast.type as string) !== 'filesystem')
    problems.push(
      new TrilithonError('FEATURE_UNAVAILABLE', `the embedded engine reads new weights from files, and not by ${weight_broadcast.type}`, {
        path: 'weight_broadcast.type',
        hint: 'Set weight_broadcast.type = "filesystem".',
      }),
    )
  const apiKey = attempt(() => resolveApiKey(host, server.api_key_var, environment))
  const modelFolder = attempt(() =>
    resolveModelFolder(model.name, { workingDirectory, environment, file: 'config.json', path: 'model.name' }),
  )
  problems.push(...(await Promise.all(ports.map((port) => busyPort(host, port)))).flatMap((problem) => problem ?? []))
  if (problems.length > 0 || apiKey === undefined || modelFolder === undefined) throw combineProblems(problems)
  return { config, workingDirectory, outputFolder: resolve(workingDirectory, output_dir), modelFolder, host, ports, apiKey }
}

/** Why nothing can listen on that port. */
export function listenFailure(host: string, port: number, cause: NodeJS.ErrnoException): TrilithonError {
  if (cause.code === 'EADDRINUSE')
    return new TrilithonError('PORT_IN_USE', `port ${port} of ${host} is in use`, {
      path: 'server.port',
      hint: 'Choose another with --server.port, or end what listens there.',
      cause,
    })
  return new TrilithonError('CONFIG_VALUE_INVALID', `the server cannot listen on ${host}, port ${port}: ${cause.message}`, {
    path: cause.code === 'EACCES' || port > 65_535 ? 'server.port' : 'server.host',
    hint: 'Give an address of this machine, and a port that you may use.',
    cause,
  })
}

/** The server that takes the port later says the same, should another program be faster. */
function busyPort(host: string, port: number): Promise<TrilithonError | undefined> {
  return new Promise((settle) => {
    const probe = createServer()
    probe.once('error', (cause) => settle(listenFailure(host, port, cause)))
    try {
      probe.listen({ host, port, exclusive: true }, () => probe.close(() => settle(undefined)))
    } catch (cause) {
      settle(listenFailure(host, port, cause as NodeJS.ErrnoException))
    }
  })
}
