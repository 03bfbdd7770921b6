import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'
import type { Logger, PolicyVersion } from '@trilithon/core'
import type { Engine, WeightExchange } from '../engine/engine.ts'
import type { ActiveRequests } from './active-requests.ts'
import { HttpFailure } from './http-failure.ts'

/** A version and the folder that it was read from. */
interface WeightSource {
  readonly version: PolicyVersion
  readonly path: string
  /** Names, sizes and times of the folder's files when they were read; null where it could not be read. */
  readonly fingerprint: string | null
}

export interface WeightUpdatesOptions {
  readonly engine: Engine
  readonly active: ActiveRequests
  /** Folder of the model that serves at first. */
  readonly modelFolder: string
  readonly log: Logger
}

/**
 * The three steps of a weight update, in order and one at a time. Each may come again, because its reply was lost or its client is impatient: what is done
 * already is answered as done. A step that fails leaves the version that serves.
 */
export class WeightUpdates {
  readonly #engine: Engine
  readonly #active: ActiveRequests
  readonly #log: Logger
  #served: WeightSource
  #prepared: WeightSource | null = null
  /** The highest version that has served: KV of it and of older ones may be in the caches. */
  #newest: PolicyVersion
  /** Of the last exchange, for a client that did not get its answer. */
  #exchanged: WeightExchange = { pausedSeconds: 0, stepSeconds: 0 }
  #last: Promise<unknown> = Promise.resolve()
  #flipping: Promise<unknown> = Promise.resolve()

  constructor({ engine, active, modelFolder, log }: WeightUpdatesOptions) {
    this.#engine = engine
    this.#active = active
    this.#log = log
    const { version } = engine.stats()
    this.#served = { version, path: resolve(modelFolder), fingerprint: fingerprintOf(modelFolder) }
    this.#newest = version
  }

  get version(): PolicyVersion {
    return this.#served.version
  }

  /** Resolves when no flip is under way: the engine must not resume in the middle of one. */
  async settled(): Promise<void> {
    await this.#flipping
  }

  /** Reads and checks a version while the old one serves. */
  prepare(version: PolicyVersion, path: string): Promise<void> {
    return this.#inOrder(() => this.#prepare(version, path))
  }

  /** Serves the prepared version. Throws `HttpFailure` 409 without a pause, or where another version is prepared. */
  flip(version: PolicyVersion): Promise<void> {
    const flipped = this.#inOrder(() => this.#flip(version))
    this.#flipping = flipped.catch(() => undefined)
    return flipped
  }

  /**
   * Pause, flip and resume in one: as the engine does them between two steps. Throws `HttpFailure` 409 where another version is prepared, and then changes
   * nothing.
   */
  exchange(version: PolicyVersion): Promise<WeightExchange> {
    const exchanged = this.#inOrder(() => this.#exchange(version))
    this.#flipping = exchanged.catch(() => undefined)
    return exchanged
  }

  /** Lets go of the version before. */
  finish(version: PolicyVersion | null): Promise<PolicyVersion> {
    return this.#inOrder(() => this.#finish(version))
  }

  /** All three of a folder that says its version: by its manifest, or by its name `step_N`. */
  async replace(path: string): Promise<PolicyVersion> {
    const version = versionOf(path)
    if (version !== this.#served.version) this.#refuseRunning()
    await this.prepare(version, path)
    await this.flip(version)
    return this.finish(version)
  }

  #inOrder<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#last.then(step)
    this.#last = result.catch(() => undefined)
    return result
  }

  async #prepare(version: PolicyVersion, path: string): Promise<void> {
    if (!isAbsolute(path)) throw new HttpFailure(400, `the path of a version must be absolute, and ${path} is not`, 'path')
    const source = { version, path: resolve(path), fingerprint: fingerprintOf(path) }
    if (version === this.#served.version) {
      if (isSame(this.#served, source)) return
      throw new HttpFailure(
        409,
        `version ${version} serves already, from ${this.#served.path} as it was then; ${source.path} is something else. Start the engine again to go back`,
        'version',
      )
    }
    if (this.#prepared !== null && this.#prepared.version === version && isSame(this.#prepared, source)) return
    this.#prepared = null
    const startedMs = performance.now()
    await this.#engine.prepareWeights({ version, path: source.path, stamp: source.fingerprint ?? '' })
    this.#prepared = source
    this.#log.info('weights prepared', { version, path: source.path, ms: Math.round(performance.now() - startedMs) })
  }

  async #flip(version: PolicyVersion): Promise<void> {
    if (version === this.#served.version) return
    const source = this.#preparedAs(version)
    this.#refuseRunning()
    const goesBack = this.#goesBack(version)
    // A version number that comes again may stand for other weights: nothing computed by the first may be taken for the second's.
    if (goesBack) this.#active.abortAll()
    await this.#engine.flipWeights(version)
    if (goesBack) await this.#engine.resetPrefixCache({ isExternal: true })
    this.#serves(source)
  }

  async #exchange(version: PolicyVersion): Promise<WeightExchange> {
    if (version === this.#served.version) await this.#engine.resume()
    else {
      const source = this.#preparedAs(version)
      if (this.#goesBack(version)) this.#exchanged = await this.#exchangeEmptied(version)
      else {
        this.#exchanged = await this.#engine.exchangeWeights(version)
        this.#serves(source)
      }
    }
    return this.#exchanged
  }

  /** The caches are emptied in between, which is more than one call of the engine's thread. */
  async #exchangeEmptied(version: PolicyVersion): Promise<WeightExchange> {
    const pausedMs = performance.now()
    await this.#engine.pause('keep')
    try {
      await this.#flip(version)
    } finally {
      await this.#engine.resume()
    }
    return { pausedSeconds: (performance.now() - pausedMs) / 1e3, stepSeconds: 0 }
  }

  /** Whether KV that is called this version's may be that of other weights. */
  #goesBack(version: PolicyVersion): boolean {
    return version <= this.#newest
  }

  #preparedAs(version: PolicyVersion): WeightSource {
    const prepared = this.#prepared
    if (prepared?.version === version) return prepared
    const found = prepared === null ? 'none is prepared' : `version ${prepared.version} is prepared`
    throw new HttpFailure(
      409,
      `version ${version} cannot serve: ${found}, and version ${this.#served.version} serves`,
      'update_info.version',
    )
  }

  #serves(source: WeightSource): void {
    const before = this.#served.version
    this.#served = source
    this.#prepared = null
    this.#newest = Math.max(this.#newest, source.version)
    this.#log.info('weights updated', { version: source.version, before })
  }

  async #finish(version: PolicyVersion | null): Promise<PolicyVersion> {
    const served = this.#served.version
    if (version !== null && version !== served)
      throw new HttpFailure(409, `the update to version ${version} cannot be finished: version ${served} serves`, 'weight_version')
    await this.#engine.finishWeights(served)
    return served
  }

  #refuseRunning(): void {
    if (!this.#engine.stats().isPaused)
      throw new HttpFailure(409, 'weights are exchanged while generation is paused: POST /pause?mode=keep first', null)
  }
}

/** A folder that has been tidied away since was the same; one whose files are others was not. */
function isSame(known: WeightSource, given: WeightSource): boolean {
  return known.path === given.path && (given.fingerprint === null || known.fingerprint === given.fingerprint)
}

/** What holds weights, or says where they are; who reads them leaves traces of other names. */
const weightFiles = /^(STABLE|LOCATION|.*\.(json|bin|safetensors))$/

function fingerprintOf(folder: string): string | null {
  try {
    return readdirSync(folder)
      .filter((name) => weightFiles.test(name))
      .sort()
      .map((name) => {
        const { ino, size, mtimeMs } = statSync(join(folder, name))
        return `${name}:${ino}:${size}:${mtimeMs}`
      })
      .join(' ')
  } catch {
    // What is wrong with a folder that is needed, the engine says when it reads it.
    return null
  }
}

/** Throws `HttpFailure` 400 where the folder does not say. */
function versionOf(folder: string): PolicyVersion {
  const named = /^step_(\d{1,9})$/.exec(basename(folder))
  if (named !== null) return Number(named[1])
  try {
    const { version } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as { readonly version?: unknown }
    if (Number.isSafeInteger(version)) return version as PolicyVersion
  } catch (error) {
    throw new HttpFailure(
      400,
      `${folder} does not say its version: it is not named step_N and has no manifest.json (${(error as Error).message})`,
      'weight_dir',
    )
  }
  throw new HttpFailure(400, `${folder} does not say its version: its manifest.json has none`, 'weight_dir')
}
