import { join } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { readTensor } from '@trilithon/native'
import { constant, normal, scope, viewOf, write } from '@trilithon/tensor'
import { type LoadReport, loadWeights } from '../checkpoint/load-weights.ts'
import { openCheckpoint } from '../checkpoint/open-checkpoint.ts'
import { writeCheckpoint } from '../checkpoint/write-checkpoint.ts'
import type { ModelConfig } from '../config/model-config.ts'
import { parseModelConfig } from '../config/parse-model-config.ts'
import { fanInit } from '../fan-init.ts'
import { nodeFiles } from '../files/node-files.ts'
import { Model, type ModelOptions } from './model.ts'

/** How random weights begin: with the `initializer_range` of the configuration, or each matrix with a deviation that follows from its inputs. */
export const initSchemes = ['config', 'fan'] as const
export type InitScheme = (typeof initSchemes)[number]

export interface CreateModelOptions extends ModelOptions {
  /** Starting values depend on (seed, name of the weight) and `init` alone. */
  readonly seed: number
  /** `config` unless said otherwise. */
  readonly init?: InitScheme
  /** `config.json` as text, for `saveModel`. */
  readonly configText?: string
}

/** A model with random weights. */
export function createModel(config: ModelConfig, options: CreateModelOptions): Model {
  const model = new Model(config, options)
  model.configText = options.configText ?? null
  return whole(model, () => (options.init === 'fan' ? initialiseByFan(model, options.seed) : model.initialise(options.seed)))
}

function initialiseByFan(model: Model, seed: number): Model {
  for (const spec of model.specs) {
    const init = fanInit(spec, model.config)
    const initialiser = init.kind === 'normal' ? normal(init.std) : constant(init.value)
    model.weights.get(spec.name)?.initialise(seed, model.dtype, initialiser)
  }
  return model
}

export interface LoadModelOptions extends Omit<ModelOptions, 'dtype'> {
  readonly files?: FileLayer
}

/** A model from a Hugging Face folder. Peak memory is one piece of a tensor above the model. Throws `MODEL_NOT_FOUND`, `CHECKPOINT_INVALID`, … */
export function loadModel(folder: string, options: LoadModelOptions = {}): { readonly model: Model; readonly report: LoadReport } {
  const files = options.files ?? nodeFiles
  const { config, text } = readModelConfig(folder, files)
  const model = new Model(config, options)
  model.configText = text
  return whole(model, () => {
    for (const parameter of model.parameters()) parameter.allocate()
    return { model, report: reloadWeights(model, folder, files) }
  })
}

/** Overwrites the weights of a model with those of a folder. A folder that does not fit is refused before the first weight is touched. */
export function reloadWeights(model: Model, folder: string, files: FileLayer = nodeFiles): LoadReport {
  const checkpoint = openCheckpoint(folder, files)
  try {
    return loadWeights(checkpoint, model.config, (spec, first, values) => {
      const parameter = model.weights.get(spec.name)
      if (parameter === undefined) return
      scope(() => write(viewOf(parameter.value, [values.length], [1], first), values))
      // The view counted the write; layouts of the whole weight are stale too.
      parameter.value.writes++
    })
  } finally {
    checkpoint.close()
  }
}

export interface SaveModelOptions {
  readonly files?: FileLayer
  readonly dtype?: 'F32' | 'BF16'
  readonly maxShardBytes?: number
  /** Files beside the weights, by name: tokeniser, chat template. */
  readonly documents?: Readonly<Record<string, string>>
}

/** Writes a Hugging Face folder, whole or not at all. */
export function saveModel(model: Model, folder: string, options: SaveModelOptions = {}): void {
  const { files = nodeFiles, dtype = 'F32', maxShardBytes, documents = {} } = options
  const config = documents['config.json'] ?? model.configText
  if (config === null)
    throw new TrilithonError(
      'MODEL_CONFIG_INVALID',
      `${folder} cannot be written: the model was made without the text of its config.json`,
      {
        path: folder,
        hint: 'Give configText to createModel, or config.json among the documents.',
      },
    )
  writeCheckpoint(
    folder,
    model.specs,
    (spec, first, into) =>
      scope(() => {
        const parameter = model.weights.get(spec.name)
        if (parameter !== undefined) readTensor(viewOf(parameter.value, [into.length], [1], first).handle, into)
      }),
    {
      files,
      dtype,
      documents: { ...documents, 'config.json': config },
      ...(maxShardBytes === undefined ? {} : { maxShardBytes }),
    },
  )
}

/** Reads and normalises `config.json` of a folder. */
export function readModelConfig(folder: string, files: FileLayer = nodeFiles): { readonly config: ModelConfig; readonly text: string } {
  const path = join(folder, 'config.json')
  if (!files.exists(path))
    throw new TrilithonError('MODEL_NOT_FOUND', `${path} is missing`, {
      path,
      hint: 'Give the folder of a model in the format of Hugging Face.',
    })
  const file = files.open(path, 'r')
  try {
    const bytes = new Uint8Array(file.size)
    file.read(bytes, 0)
    const text = new TextDecoder().decode(bytes)
    return { config: parseModelConfig(parseJson(text, path), path), text }
  } finally {
    file.close()
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TrilithonError('MODEL_CONFIG_INVALID', `${path} is not JSON: ${(cause as Error).message}`, {
      path,
      hint: 'Copy the file again.',
      cause,
    })
  }
}

/** Frees the model where `body` fails. */
function whole<T>(model: Model, body: () => T): T {
  try {
    return body()
  } catch (error) {
    model.dispose()
    throw error
  }
}
