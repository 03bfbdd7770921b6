import { type Logger, type PolicyVersion, TrilithonError } from '@trilithon/core'
import { latestVersion, versionFolder } from '@trilithon/transport'
import type { OrchestratorConfiguration } from '../configuration/orchestrator-schema.ts'
import type { EngineAdmin } from '../fleet/engine-admin.ts'
import { type EngineAddress, LiveFleet } from '../fleet/live-fleet.ts'
import type { Clock } from '../run/clock.ts'
import type { VersionHolds } from '../updates/version-holds.ts'
import { WeightUpdater } from '../updates/weight-updater.ts'

type Client = OrchestratorConfiguration['student']['client']

const withoutVersion = (url: string): string => url.replace(/\/+$/, '').replace(/\/v1$/, '')

/** Engines that a configuration names. `admin_base_url` has one URL per engine; behind a router there may be more of them than URLs for requests. */
export function engineAddresses({ base_url, admin_base_url, dp_rank_count: ranks }: Client): EngineAddress[] {
  if (admin_base_url === null) return base_url.map((url) => ({ url: withoutVersion(url), adminUrl: withoutVersion(url), ranks }))
  return admin_base_url.map((admin, index) => {
    const url = base_url[index] ?? base_url[0]
    return {
      url: withoutVersion(base_url.length === admin_base_url.length && url !== undefined ? url : admin),
      adminUrl: withoutVersion(admin),
      ranks,
    }
  })
}

/** Headers of the configuration, and the key where its variable is set. */
export function clientHeaders({ headers, headers_from_env, api_key_var }: Client, environment: NodeJS.ProcessEnv) {
  const fromEnvironment = Object.entries(headers_from_env).flatMap(([header, variable]) => {
    const value = environment[variable]
    return value === undefined ? [] : [[header, value] as const]
  })
  const own = { ...headers, ...Object.fromEntries(fromEnvironment) }
  const key = environment[api_key_var]
  return { requests: own, admin: key === undefined || key === '' ? own : { ...own, authorization: `Bearer ${key}` } }
}

export interface ConnectOptions {
  readonly client: Client
  readonly model: string
  readonly admin: EngineAdmin
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Waits until all engines are healthy and serve the model. Throws `ENGINE_FAILED` when they take too long. */
export async function connectEngines({ client, model, admin, clock, log, signal }: ConnectOptions): Promise<LiveFleet> {
  const fleet = new LiveFleet(engineAddresses(client), clock)
  const endMs = clock.nowMs() + client.wait_for_ready_timeout * 1000
  for (const engine of fleet.engines) {
    while (!(await admin.isHealthy(engine, signal))) {
      signal.throwIfAborted()
      if (clock.nowMs() >= endMs)
        throw new TrilithonError('ENGINE_FAILED', `${engine} was not ready within ${client.wait_for_ready_timeout} s`, {
          path: 'orchestrator.student.client.wait_for_ready_timeout',
          hint: 'Look into the log of the engine, or raise the time.',
        })
      await clock.sleep(Math.min(1000, Math.max(1, endMs - clock.nowMs())), signal)
    }
    if (!client.skip_model_check) {
      const models = await admin.models(engine, signal)
      if (!models.includes(model))
        throw new TrilithonError('ENGINE_FAILED', `${engine} serves ${models.join(', ') || 'nothing'}, and not ${model}`, {
          path: 'orchestrator.student.model.name',
          hint: 'Give engine and orchestrator the same model.name, or set client.skip_model_check.',
        })
    }
    fleet.change(engine, { state: 'ready', policyVersion: await admin.version(engine, signal) })
    log.info('engine ready', { engine })
  }
  return fleet
}

export interface FirstVersionOptions {
  readonly fleet: LiveFleet
  readonly admin: EngineAdmin
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly broadcasts: string
  readonly holds: VersionHolds
  /** The version of the checkpoint; null where a run begins. */
  readonly resumeStep: PolicyVersion | null
  readonly timeoutS: number
}

/** Resolves to the version that all engines serve at the beginning: that of the model's folder, or of the checkpoint once the trainer has published it. */
export async function serveFirstVersion(options: FirstVersionOptions): Promise<PolicyVersion> {
  const { fleet, resumeStep } = options
  const versions = [...new Set([...fleet.workers()].map(({ policyVersion }) => policyVersion))]
  if (resumeStep !== null) return serveResumed(options, resumeStep)
  const [version = 0] = versions
  if (versions.length === 1 && version === 0) return 0
  throw new TrilithonError(
    'ENGINE_FAILED',
    `The engines serve version ${versions.join(', ')} of the weights, and a run begins with version 0`,
    {
      hint: 'Start the engines again, or resume from a checkpoint.',
    },
  )
}

async function serveResumed(options: FirstVersionOptions, step: PolicyVersion): Promise<PolicyVersion> {
  const { fleet, admin, clock, log, signal, broadcasts, holds, timeoutS } = options
  const endMs = clock.nowMs() + timeoutS * 1000
  const nothing = () => undefined
  const updater = new WeightUpdater({
    ...{ admin, fleet, clock, log, holds, onPause: nothing, onServed: nothing, onEnd: nothing, onEngineFailed: nothing },
    folderOf: (version) => versionFolder(broadcasts, version),
    onPending: async () => undefined,
  })
  for (;;) {
    signal.throwIfAborted()
    // Batches that were shipped before may have been trained already.
    const version = latestVersion(broadcasts)
    if (version !== null && version >= step && (await updater.apply(version, signal))) return version
    if (clock.nowMs() >= endMs)
      throw new TrilithonError('RESUME_IMPOSSIBLE', `The trainer did not publish the weights of step ${step} within ${timeoutS} s`, {
        path: 'orchestrator.ckpt.wait_for_weights_timeout',
        hint: 'Start the trainer with the same ckpt.resume_step, or raise the time.',
      })
    await clock.sleep(100, signal)
  }
}
