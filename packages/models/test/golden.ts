/** The golden fixtures: what Hugging Face computed for the tiny models of `src/__fixtures__`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Golden {
  readonly folder: string
  readonly ids: readonly number[]
  readonly loss: number
  readonly logprobs: readonly number[]
  readonly routed: Readonly<Record<string, { readonly indices: readonly (readonly number[])[] }>>
  readonly indexerTopK: Readonly<Record<string, readonly (readonly number[])[]>>
  readonly noGradient: readonly string[]
  /** `logits`, and `grad.<name>`. */
  readonly expected: ReadonlyMap<string, Float32Array>
}

export const goldenFamilies = ['qwen3', 'qwen3_moe', 'glm_moe_dsa'] as const
export type GoldenFamily = (typeof goldenFamilies)[number]

export function readGolden(family: GoldenFamily): Golden {
  const folder = fileURLToPath(new URL(`../src/__fixtures__/${family}`, import.meta.url))
  const json = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8'))
  return {
    folder,
    ids: json.input_ids,
    loss: json.loss_value,
    logprobs: json.logprobs,
    routed: json.routed,
    indexerTopK: json.indexer_topk,
    noGradient: json.no_grad_params,
    expected: readSafetensors(join(folder, 'expected.safetensors')),
  }
}

function readSafetensors(path: string): ReadonlyMap<string, Float32Array> {
  const bytes = readFileSync(path)
  const length = Number(bytes.readBigUInt64LE(0))
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString()) as Record<string, { data_offsets: [number, number] }>
  return new Map(
    Object.entries(header)
      .filter(([name]) => name !== '__metadata__')
      .map(
        ([
          name,
          {
            data_offsets: [begin, end],
          },
        ]) => [name, new Float32Array(bytes.buffer.slice(bytes.byteOffset + 8 + length + begin, bytes.byteOffset + 8 + length + end))],
      ),
  )
}

/** The weight of each position in the fixtures' loss, -sum of weight * log-probability: from -1 to 1. */
export function lossWeights(positions: number): readonly number[] {
  return Array.from({ length: positions }, (_, index) => -1 + (2 * index) / (positions - 1))
}

export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let largest = a.length === b.length ? 0 : Number.POSITIVE_INFINITY
  for (let i = 0; i < a.length; i++) largest = Math.max(largest, Math.abs((a[i] as number) - (b[i] as number)))
  return largest
}

/** |a - b| / |b| in the Euclidean norm. */
export function relativeNorm(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let difference = a.length === b.length ? 0 : Number.POSITIVE_INFINITY
  let norm = 0
  for (let i = 0; i < a.length; i++) {
    difference += ((a[i] as number) - (b[i] as number)) ** 2
    norm += (b[i] as number) ** 2
  }
  return Math.sqrt(difference) / Math.max(Math.sqrt(norm), Number.MIN_VALUE)
}
