import type { FileLayer } from '@trilithon/core'
import { createModel, loadModel, type Model, readModelConfig } from '@trilithon/models'
import type { TrainerModel } from '../configuration/model-table.ts'

/** The model of a folder, as the table `model` wants it. The caller disposes of it. Throws `MODEL_NOT_FOUND`, `CHECKPOINT_INVALID`, … */
export function openModel(model: Pick<TrainerModel, 'debug' | 'index_kl_weight'>, folder: string, files: FileLayer): Model {
  const options = { indexKlWeight: model.index_kl_weight }
  if (model.debug.random_init) {
    const { config, text } = readModelConfig(folder, files)
    return createModel(config, { ...options, seed: 0, configText: text })
  }
  return loadModel(folder, { ...options, files }).model
}
