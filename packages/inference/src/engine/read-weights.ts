import { join } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { type Model, openCheckpoint, readModelConfig, type WeightSpec } from '@trilithon/models'
import { scope, viewOf, write } from '@trilithon/tensor'
import type { OpenWeights } from '@trilithon/transport'

/** Elements that are copied between two steps of the engine. */
const pieceElements = 1 << 20

export interface ReadWeightsOptions {
  readonly model: Model
  readonly path: string
  readonly version: number
  readonly profile: string
  readonly files: FileLayer
  readonly openWeights: (folder: string) => OpenWeights
}

/**
 * Fills a model with a version of the weights: a published one, which has a manifest, or a folder in Hugging Face's format. Names, shapes, profile and
 * version are checked before the first element, every tensor's checksum before it is taken, every element for being finite. It stops after every piece,
 * so that steps of the engine come between. Throws `WEIGHTS_INVALID` and, for a folder of Hugging Face's format, `CHECKPOINT_INVALID`.
 */
export function* readWeights(options: ReadWeightsOptions): Generator<void, void> {
  const { files, path } = options
  if (!files.exists(path)) throw invalid(path, 'there is no such folder')
  const has = (...names: readonly string[]) => names.some((name) => files.exists(join(path, name)))
  // Whatever is no checkpoint is a published version, or one that is not whole, which is refused in its own words.
  if (has('model.safetensors', 'model.safetensors.index.json') && !has('manifest.json', 'STABLE', 'LOCATION')) yield* readFolder(options)
  else yield* readPublished(options)
}

function* readPublished({ model, path, version, profile, openWeights }: ReadWeightsOptions): Generator<void, void> {
  const weights = openWeights(path)
  try {
    const { manifest } = weights
    if (manifest.version !== version) throw invalid(path, `it is version ${manifest.version}, ${version} was asked for`)
    if (manifest.profile !== profile) throw invalid(path, `its numerics profile is ${manifest.profile}, the engine computes in ${profile}`)
    const shapes = new Map(manifest.tensors.map(({ name, shape }) => [name, shape]))
    const sources = sourcesOf(model.specs, shapes, path)
    for (const { spec, name, offset, elements } of sources) {
      yield* weights.verifyInPieces(name)
      const values = new Float32Array(Math.min(elements, pieceElements))
      for (let first = 0; first < elements; first += pieceElements) {
        const piece = values.subarray(0, Math.min(pieceElements, elements - first))
        weights.read(name, first, piece)
        place(model, spec, offset + first, piece, path, name)
        yield
      }
    }
  } finally {
    weights.release()
  }
}

function* readFolder({ model, path, files }: ReadWeightsOptions): Generator<void, void> {
  if (files.exists(join(path, 'config.json'))) {
    const { config } = readModelConfig(path, files)
    if (JSON.stringify(config) !== JSON.stringify(model.config))
      throw invalid(path, 'its config.json describes another model than the one that is served')
  }
  const checkpoint = openCheckpoint(path, files)
  try {
    const shapes = new Map([...checkpoint.tensors].map(([name, { shape }]) => [name, shape]))
    // Some files repeat the embedding as a head although the two are tied.
    if (model.config.tiedEmbeddings) shapes.delete('lm_head.weight')
    for (const { spec, name, offset } of sourcesOf(model.specs, shapes, path)) {
      for (const { values, firstElement } of checkpoint.pieces(name)) {
        place(model, spec, offset + firstElement, values, path, name)
        yield
      }
    }
  } finally {
    checkpoint.close()
  }
}

interface Source {
  readonly spec: WeightSpec
  readonly name: string
  /** First element in the parameter. */
  readonly offset: number
  readonly elements: number
}

/** Which tensor fills which part of which parameter: a parameter comes whole under its own name, or in the parts that lie on disk. */
function sourcesOf(specs: readonly WeightSpec[], shapes: ReadonlyMap<string, readonly number[]>, path: string): Source[] {
  const sources: Source[] = []
  const faults: string[] = []
  const wanted = new Set<string>()
  for (const spec of specs) {
    const parts = shapes.has(spec.name) ? [{ name: spec.name, shape: spec.shape, offset: 0 }] : spec.parts
    for (const { name, shape, offset } of parts) {
      wanted.add(name)
      const found = shapes.get(name)
      if (found === undefined) faults.push(`${name} is missing`)
      else if (found.join() !== shape.join()) faults.push(`${name} has shape [${found.join(', ')}], the model wants [${shape.join(', ')}]`)
      sources.push({ spec, name, offset, elements: shape.reduce((product, size) => product * size, 1) })
    }
  }
  for (const name of shapes.keys()) if (!wanted.has(name)) faults.push(`${name} is not part of the model`)
  if (faults.length > 0)
    throw invalid(
      path,
      `it does not fit the model: ${faults.slice(0, 8).join('; ')}${faults.length > 8 ? `; and ${faults.length - 8} more` : ''}`,
    )
  return sources
}

function place(model: Model, spec: WeightSpec, first: number, values: Float32Array, path: string, name: string): void {
  for (let index = 0; index < values.length; index++)
    if (!Number.isFinite(values[index])) throw invalid(path, `element ${index} of a piece of ${name} is ${values[index]}`)
  const parameter = model.weights.get(spec.name)
  if (parameter === undefined) return
  scope(() => write(viewOf(parameter.value, [values.length], [1], first), values))
}

function invalid(path: string, reason: string): TrilithonError {
  return new TrilithonError('WEIGHTS_INVALID', `${path}: ${reason}`, {
    path,
    hint: 'The version that serves goes on; publish this one again, or give the folder of another.',
  })
}
