import { join } from 'node:path'
import type { RlConfiguration } from '../../roots/rl-configuration.ts'
import { divideCores, threadsVariable } from './divide-cores.ts'
import type { RolePlan } from './launcher.ts'

/** The command line that starts a role: `node main.js`. */
export type CommandLine = readonly [program: string, ...words: string[]]

export interface PlanRolesOptions {
  readonly config: RlConfiguration
  /** Absolute folder of the run. */
  readonly folder: string
  readonly environment: NodeJS.ProcessEnv
  readonly commandLine: CommandLine
  readonly cores: number
}

/** Ports of the engines that this run starts, one after the other. */
export function enginePorts({ inference }: RlConfiguration): number[] {
  if (inference === null) return []
  return Array.from({ length: inference.parallel.dp }, (_, index) => inference.server.port + index)
}

/** The roles of a run as processes, each with its resolved configuration, its share of the cores and its log. Environment workers belong to the orchestrator. */
export function planRoles({ config, folder, environment, commandLine, cores }: PlanRolesOptions): RolePlan[] {
  const ports = enginePorts(config)
  const threads = divideCores(cores, ports.length)
  const plan = (name: string, root: string, purpose: RolePlan['purpose'], own: number | undefined, flags: readonly string[]): RolePlan => ({
    name,
    purpose,
    command: [...commandLine, root, '@', join(folder, 'configs', `${root}.toml`), ...flags],
    // Who has set the number of threads wants it everywhere.
    environment: own === undefined ? environment : { [threadsVariable]: String(own), ...environment },
    log: join(folder, 'logs', `${name}.log`),
  })
  const engines = ports.map((port, index) =>
    plan(ports.length === 1 ? 'inference' : `inference-${index}`, 'inference', 'service', threads.inference, [
      `--server.port=${port}`,
      '--parallel.dp=1',
      `--output-dir=${folder}`,
    ]),
  )
  return [
    ...engines,
    plan('orchestrator', 'orchestrator', 'work', undefined, clientFlags(config)),
    plan('trainer', 'trainer', 'work', threads.trainer, []),
  ]
}

/** Several engines are servers of their own here, and not ranks behind one, as which the configuration has them. */
function clientFlags(config: RlConfiguration): string[] {
  const ports = enginePorts(config)
  const { base_url: urls } = config.orchestrator.student.client
  const [url] = urls
  // Who has written more than the one URL that follows from the server knows what the engines are behind.
  if (ports.length < 2 || urls.length !== 1 || url === undefined || !URL.canParse(url) || new URL(url).port !== String(ports[0])) return []
  const all = ports.map((port) => {
    const one = new URL(url)
    one.port = String(port)
    return one.href
  })
  return [`--student.client.base-url=${JSON.stringify(all)}`, '--student.client.dp-rank-count=1']
}
