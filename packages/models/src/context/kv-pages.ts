import { invariant } from '@trilithon/core'
import { bytesPerElement, empty, keep, type Tensor, viewOf } from '@trilithon/tensor'
import type { ModelConfig } from '../config/model-config.ts'
import { refuse } from '../refuse.ts'

/** One kind of row that a model keeps of every token, in some of its layers. */
export interface KVComponent {
  readonly name: 'k' | 'v' | 'latent' | 'rotary' | 'index'
  /** Layers that keep one, ascending: the parts of the component. */
  readonly layers: readonly number[]
  /** Shape of one token's row in one layer. */
  readonly row: readonly number[]
}

/** What a model keeps of a token: keys and values, or the latent and the rotary part of MLA's one key, and the keys of its indexers. */
export function kvComponents(config: ModelConfig): readonly KVComponent[] {
  const layers = Array.from({ length: config.layers }, (_, layer) => layer)
  if (config.family === 'glm_moe_dsa') {
    return [
      { name: 'latent', layers, row: [config.kvLoraRank] },
      { name: 'rotary', layers, row: [config.qkRopeHeadDim] },
      { name: 'index', layers: layers.filter((layer) => config.indexer.fullLayers[layer] === true), row: [config.indexer.headDim] },
    ]
  }
  const row = [config.keyValueHeads, config.headDim]
  return [
    { name: 'k', layers, row },
    { name: 'v', layers, row },
  ]
}

const elementsOfRow = ({ row }: KVComponent) => row.reduce((product, size) => product * size, 1)

/** Elements that all layers keep of one token. */
export function kvElementsPerToken(config: ModelConfig): number {
  return kvComponents(config).reduce((sum, component) => sum + component.layers.length * elementsOfRow(component), 0)
}

/** Name of the layout of a block's bytes: two engines may exchange blocks where it is equal. */
export function kvFormat(config: ModelConfig, blockSize: number, dtype: 'f32' | 'f64' = 'f32'): string {
  const parts = kvComponents(config).map(({ name, layers, row }) => `${name}:${layers.length}x${blockSize}x${row.join('x')}`)
  return `${config.family}/${parts.join('+')}/${dtype}`
}

/**
 * Memory for the keys of an engine: a number of pages, each with room for `blockSize` tokens in every layer. Which sequence uses which page is the
 * engine's business.
 */
export class KVPages {
  readonly blockSize: number
  readonly pages: number
  readonly dtype: 'f32' | 'f64'
  readonly format: string
  readonly components: readonly KVComponent[]
  /** By component: [layers, pages, elements of a page]. Gather and scatter move blocks between these and slots of bytes. */
  readonly tensors: readonly Tensor[]

  constructor(config: ModelConfig, pages: number, blockSize: number, dtype: 'f32' | 'f64' = 'f32') {
    for (const [name, value] of Object.entries({ pages, blockSize }))
      if (!Number.isSafeInteger(value) || value < 1) refuse('KVPages', name, 'a whole number above 0', String(value))
    this.blockSize = blockSize
    this.pages = pages
    this.dtype = dtype
    this.format = kvFormat(config, blockSize, dtype)
    this.components = kvComponents(config)
    this.tensors = this.components.map((component) =>
      keep(empty(dtype, [component.layers.length, pages, blockSize * elementsOfRow(component)])),
    )
  }

  /** Bytes of one page in all layers. */
  get bytesPerPage(): number {
    const elements = this.components.reduce((sum, component) => sum + component.layers.length * elementsOfRow(component), 0)
    return elements * this.blockSize * bytesPerElement[this.dtype]
  }

  /** [pages, blockSize, …row] of one layer: a view. */
  of(name: KVComponent['name'], layer: number): Tensor {
    const index = this.components.findIndex((component) => component.name === name)
    const component = this.components[index]
    const tensor = this.tensors[index]
    const part = component?.layers.indexOf(layer) ?? -1
    invariant(component !== undefined && tensor !== undefined && part >= 0, `layer ${layer} keeps no ${name}`)
    const shape = [this.pages, this.blockSize, ...component.row]
    const strides = shape.map((_, dim) => shape.slice(dim + 1).reduce((product, size) => product * size, 1))
    return viewOf(tensor, shape, strides, part * (tensor.strides[0] as number))
  }

  dispose(): void {
    for (const tensor of this.tensors) tensor.dispose()
  }
}
