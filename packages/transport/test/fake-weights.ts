import { join } from 'node:path'
import { openWeights } from '../src/weights/open-weights.ts'
import type { TensorToServe } from '../src/weights/weights-manifest.ts'
import { createWeightsPublisher, type WeightsPublisher, type WeightsPublisherOptions } from '../src/weights/weights-publisher.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A large one, one that ends between cache lines, one without elements, one without dims. */
const tensorsWith = (columns: number): readonly TensorToServe[] => [
  { name: 'large', dtype: 'F32', shape: [3, columns] },
  { name: 'none', dtype: 'F32', shape: [0, 7] },
  { name: 'half', dtype: 'BF16', shape: [5, 7] },
  { name: 'one', dtype: 'F32', shape: [] },
]
const fakeTensors = tensorsWith(103)
/** The large one is written and read in more than one piece. */
export const largeTensors = tensorsWith(100_003)

/** Small whole numbers, which bfloat16 holds, that tell tensors, places and versions apart. */
export const elementOf = (version: number, name: string, element: number): number =>
  ((version * 31 + name.length * 7 + element) % 251) - 100

export const fill =
  (version: number) =>
  (name: string, first: number, into: Float32Array): void => {
    for (let index = 0; index < into.length; index++) into[index] = elementOf(version, name, first + index)
  }

export interface FakeRun {
  readonly broadcasts: string
  readonly memoryFolder: string
  readonly publisher: WeightsPublisher
  /** A second publisher for the same folders, as after a restart. */
  restart(options?: Partial<WeightsPublisherOptions>): WeightsPublisher
}

/** A publisher with folders of its own; its memory is a folder on the disk. */
export function fakeRun(options: Partial<WeightsPublisherOptions> = {}): FakeRun {
  const broadcasts = join(temporaryFolder(), 'run_default', 'broadcasts')
  const memoryFolder = temporaryFolder()
  const restart = (more: Partial<WeightsPublisherOptions> = {}) =>
    createWeightsPublisher({
      broadcasts,
      memoryFolder,
      profile: 'fp32',
      tensors: fakeTensors,
      memoryBacked: 'auto',
      keep: 1,
      ...options,
      ...more,
    })
  return { broadcasts, memoryFolder, publisher: restart(), restart }
}

/** Opens a version, verifies it, and compares every element; throws at the first that is of something else. */
export function expectVersion(folder: string, version: number): void {
  const weights = openWeights(folder)
  try {
    expectContent(weights, version)
  } finally {
    weights.release()
  }
}

export function expectContent(weights: ReturnType<typeof openWeights>, version: number): void {
  if (weights.manifest.version !== version) throw new Error(`version ${weights.manifest.version} instead of ${version}`)
  for (const { name, shape } of weights.manifest.tensors) {
    weights.verify(name)
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1))
    weights.read(name, 0, values)
    const wrong = values.findIndex((value, element) => value !== elementOf(version, name, element))
    if (wrong !== -1) throw new Error(`torn: ${name}[${wrong}] is ${values[wrong]} in version ${version}`)
  }
}
