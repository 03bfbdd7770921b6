import type { Model } from '@trilithon/models'
import { createWeightsPublisher, type TensorToServe, type WeightsPublisher } from '@trilithon/transport'
import { readElements } from '../run/training-state.ts'

export interface PolicyPublisherOptions {
  readonly model: Model
  /** Holds the `step_N` folders of versions. */
  readonly broadcasts: string
  readonly profile: string
  /** What lies there of this version and later ones is of a run that went on from an earlier checkpoint; it is removed. */
  readonly firstVersion: number
  /** The last version of the run; null where it has no end. */
  readonly lastVersion: number | null
}

/** Engines may still serve the version before the newest. */
const keptVersions = 2

/**
 * Publishes versions of a model's weights, every weight and buffer by Hugging Face's name in memory. They lie in memory that processes share where they fit;
 * that goes with the process, so the last version of a run lies on the disk: others read it when the trainer has ended.
 */
export class PolicyPublisher {
  readonly #options: PolicyPublisherOptions
  readonly #tensors: readonly TensorToServe[]
  readonly #publisher: WeightsPublisher

  /** Throws `OUTPUT_UNUSABLE`. */
  constructor(options: PolicyPublisherOptions) {
    this.#options = options
    this.#tensors = options.model.specs.map(({ name, shape }) => ({ name, dtype: 'F32', shape }))
    this.#publisher = this.#open('auto', options.firstVersion)
  }

  /** Publishes the weights as they are now. Throws `OUTPUT_UNUSABLE`; earlier versions are untouched. */
  async publish(version: number): Promise<void> {
    const { model, lastVersion } = this.#options
    const publisher = version === lastVersion ? this.#open('never', version) : this.#publisher
    await publisher.publish(version, (name, first, into) => {
      const parameter = model.weights.get(name)
      if (parameter === undefined) throw new Error(`the model has no weight ${name}`)
      readElements(parameter.value, first, into)
    })
    this.#publisher.collect([])
  }

  dispose(): void {
    this.#publisher.dispose()
  }

  #open(memoryBacked: 'auto' | 'never', discardFrom: number): WeightsPublisher {
    const { broadcasts, profile } = this.#options
    return createWeightsPublisher({ broadcasts, profile, tensors: this.#tensors, memoryBacked, keep: keptVersions, discardFrom })
  }
}
