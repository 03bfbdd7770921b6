import { TrilithonError } from '@trilithon/core'
import type { ModelConfig } from '../config/model-config.ts'
import { isIgnoredTensor, modelWeights } from '../model-weights.ts'
import type { WeightSpec } from '../weight-spec.ts'
import type { Checkpoint } from './open-checkpoint.ts'

/** Tensors of the file that are no part of the model, on purpose. */
export interface LoadReport {
  readonly ignored: readonly string[]
}

/**
 * Streams a checkpoint into the weights of a model. `take` receives pieces: the first element in the parameter and the values, which are only
 * valid during the call.
 *
 * Every name and shape is checked before the first piece. Missing and unexpected tensors are listed together in one `CHECKPOINT_INVALID`. A value
 * that is not finite is refused, with its place.
 */
export function loadWeights(
  checkpoint: Checkpoint,
  config: ModelConfig,
  take: (spec: WeightSpec, firstElement: number, values: Float32Array) => void,
): LoadReport {
  const specs = [...modelWeights(config)]
  const faults: string[] = []
  const wanted = new Set<string>()
  for (const { parts } of specs) {
    for (const { name, shape } of parts) {
      wanted.add(name)
      const found = checkpoint.tensors.get(name)
      if (found === undefined) faults.push(`${name} is missing`)
      else if (found.shape.join() !== shape.join())
        faults.push(`${name} has shape [${found.shape.join(', ')}], the model wants [${shape.join(', ')}]`)
    }
  }
  const others = [...checkpoint.tensors.keys()].filter((name) => !wanted.has(name) && !isTiedHead(config, name))
  const ignored = others.filter((name) => isIgnoredTensor(config, name))
  for (const name of others) if (!isIgnoredTensor(config, name)) faults.push(`${name} is not part of the model`)
  if (faults.length > 0) {
    const shown = faults.slice(0, 8).join('; ')
    throw new TrilithonError(
      'CHECKPOINT_INVALID',
      `${checkpoint.folder} does not fit its config.json: ${shown}${faults.length > 8 ? `; and ${faults.length - 8} more` : ''}`,
      {
        path: checkpoint.folder,
        hint: 'Take config.json and weights from the same checkpoint.',
        details: { faults },
      },
    )
  }
  for (const spec of specs) {
    for (const part of spec.parts) {
      checkpoint.read(part.name, (values, first) => {
        const bad = values.findIndex((value) => !Number.isFinite(value))
        if (bad >= 0) throw notFinite(checkpoint.folder, part.name, first + bad, values[bad])
        take(spec, part.offset + first, values)
      })
    }
  }
  return { ignored }
}

/** Some files repeat the embedding as a head although the two are tied. */
function isTiedHead(config: ModelConfig, name: string): boolean {
  return config.tiedEmbeddings && name === 'lm_head.weight'
}

function notFinite(folder: string, name: string, element: number, value: number | undefined): TrilithonError {
  return new TrilithonError('CHECKPOINT_INVALID', `${folder}: element ${element} of ${name} is ${value}`, {
    path: folder,
    hint: 'The weights are damaged or diverged; take an earlier checkpoint.',
    details: { tensor: name, element },
  })
}
