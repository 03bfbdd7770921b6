import { createHash } from 'node:crypto'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { Model } from '@trilithon/models'
import { readTensor } from '@trilithon/native'
import { scope, viewOf } from '@trilithon/tensor'
import type { OpenWeights } from '@trilithon/transport'
import { readWeights } from './read-weights.ts'

export interface ServingWeightsOptions {
  readonly model: Model
  readonly version: number
  /** Where it was read from. */
  readonly path: string
  readonly profile: string
  readonly files: FileLayer
  readonly openWeights: (folder: string) => OpenWeights
}

interface Held {
  readonly version: number
  readonly path: string
  /** Tells two contents of the path apart. */
  readonly stamp: string
  readonly model: Model
}

interface Job extends Held {
  readonly pieces: Generator<void, void>
  readonly settled: ((error: unknown) => void)[]
}

/**
 * The versions of the weights in an engine: the one that serves, one that is being read or lies ready, and the one before until it is let go. A failure
 * of reading touches none but the version that is read.
 */
export class ServingWeights {
  #serving: Held
  #prepared: Held | null = null
  #previous: Held | null = null
  #job: Job | null = null
  readonly #options: ServingWeightsOptions

  constructor(options: ServingWeightsOptions) {
    this.#options = options
    const { model, version, path } = options
    this.#serving = { model, version, path, stamp: '' }
  }

  get model(): Model {
    return this.#serving.model
  }

  get version(): number {
    return this.#serving.version
  }

  /** Whether `advance` has something to do. */
  get isReading(): boolean {
    return this.#job !== null
  }

  /** Begins to read a version; `settled` is called with null when it lies ready, or with what went wrong. */
  prepare({ version, path, stamp }: Omit<Held, 'model'>, settled: (error: unknown) => void): void {
    const isSame = (held: Held | null) => held !== null && held.version === version && held.path === path && held.stamp === stamp
    if (isSame(this.#serving) || isSame(this.#prepared)) {
      settled(null)
      return
    }
    if (this.#job !== null) {
      if (isSame(this.#job)) {
        this.#job.settled.push(settled)
        return
      }
      this.#end(
        new TrilithonError('WEIGHTS_NOT_PREPARED', `version ${this.#job.version} was given up for version ${version}`, {
          hint: 'Prepare one version at a time.',
        }),
      )
    }
    // At most two models at a time: a version that nobody let go, or that never served, makes room.
    this.#drop('previous')
    this.#drop('prepared')
    const { profile, files, openWeights } = this.#options
    const model = new Model(this.model.config, { dtype: this.model.dtype })
    model.configText = this.model.configText
    const pieces = prepareModel(model, () => readWeights({ model, path, version, profile, files, openWeights }))
    this.#job = { version, path, stamp, model, pieces, settled: [settled] }
  }

  /** Reads one piece. */
  advance(): void {
    const job = this.#job
    if (job === null) return
    try {
      if (job.pieces.next().done !== true) return
      const { version, path, stamp, model } = job
      this.#prepared = { version, path, stamp, model }
      this.#end(null)
    } catch (error) {
      this.#end(error)
    }
  }

  /** Serves the prepared version. Repeated, it changes nothing. */
  flip(version: number): void {
    if (this.#prepared?.version === version) {
      this.#drop('previous')
      this.#previous = this.#serving
      this.#serving = this.#prepared
      this.#prepared = null
    } else if (this.version !== version) throw notPrepared(version, this.version, this.#prepared?.version ?? null)
  }

  /** Frees what served before `version`. */
  finish(version: number): void {
    if (this.version !== version) throw notPrepared(version, this.version, this.#prepared?.version ?? null)
    this.#drop('previous')
  }

  checksums(): Record<string, string> {
    const checksums: Record<string, string> = {}
    const piece = new Float32Array(1 << 20)
    for (const { name, value, elements } of this.model.parameters()) {
      const hash = createHash('sha256')
      for (let first = 0; first < elements; first += piece.length) {
        const values = piece.subarray(0, Math.min(piece.length, elements - first))
        scope(() => readTensor(viewOf(value, [values.length], [1], first).handle, values))
        hash.update(new Uint8Array(values.buffer, 0, values.byteLength))
      }
      checksums[name] = hash.digest('hex')
    }
    return checksums
  }

  dispose(): void {
    if (this.#job !== null)
      this.#end(new TrilithonError('ENGINE_FAILED', 'the engine was stopped while it read weights', { hint: 'Start it again.' }))
    this.#drop('previous')
    this.#drop('prepared')
    this.#serving.model.dispose()
  }

  #drop(which: 'previous' | 'prepared'): void {
    const held = which === 'previous' ? this.#previous : this.#prepared
    held?.model.dispose()
    if (which === 'previous') this.#previous = null
    else this.#prepared = null
  }

  #end(error: unknown): void {
    const job = this.#job
    if (job === null) return
    this.#job = null
    if (error !== null) {
      // Lets go of what it has open, where it was stopped on the way.
      job.pieces.return()
      job.model.dispose()
    }
    for (const settled of job.settled) settled(error)
  }
}

function* prepareModel(model: Model, read: () => Generator<void, void>): Generator<void, void> {
  for (const parameter of model.parameters()) {
    parameter.allocate(model.dtype)
    yield
  }
  yield* read()
  // Views counted the writes of pieces; layouts of whole weights are made here and match them.
  yield* model.packProjectionsInPieces()
}

function notPrepared(version: number, serving: number, prepared: number | null): TrilithonError {
  const state = prepared === null ? 'none is prepared' : `version ${prepared} is prepared`
  return new TrilithonError('WEIGHTS_NOT_PREPARED', `version ${version} is not prepared: version ${serving} serves and ${state}`, {
    path: 'version',
    hint: 'Prepare this version first.',
  })
}
