import { totalmem } from 'node:os'
import { join } from 'node:path'
import { type FileLayer, type KVStore, TrilithonError } from '@trilithon/core'
import { kvElementsPerToken, type ModelConfig } from '@trilithon/models'
import { z } from 'zod'

export interface EngineOptions {
  /** In Hugging Face's format. */
  readonly modelFolder: string
  /** Version of the weights in that folder; 0 unless said otherwise. */
  readonly version?: number
  readonly profile?: 'fp32' | 'bf16'
  /** Tokens of a block; 16 unless said otherwise. */
  readonly blockSize?: number
  /** Memory for keys; null takes up to a quarter of the machine's, at most 4 GiB, and no more than all sequences together can fill. */
  readonly kvBytes?: number | null
  /** Tokens of the longest sequence; null takes that of the model, as far as the memory for keys goes. */
  readonly maxModelLen?: number | null
  /** Most sequences of a step; 256 unless said otherwise. */
  readonly maxRunning?: number
  /** Most tokens of prompts in a step; 512 unless said otherwise. */
  readonly prefillTokens?: number
  readonly prefixCaching?: boolean
  /** Records the experts that tokens go to; without it no request gets any. */
  readonly routedExperts?: boolean
  /** Takes blocks that leave the cache and gives them back. Whoever made it disposes it, after the engine. */
  readonly store?: KVStore | null
  /** Blocks that may be on their way to the store, and from it; as many as there are in 128 and in 32 MiB unless said otherwise, from 32 to 64 and from 4 to 16. */
  readonly slots?: { readonly leaving: number; readonly coming: number }
  /** Of the native pool; the machine's cores unless said otherwise. */
  readonly threads?: number
  /** `here` computes in the calling thread, between its events: for tests. */
  readonly thread?: 'own' | 'here'
}

/** Options with everything said: what the thread of the model is started with. */
export interface HostOptions {
  readonly modelFolder: string
  readonly version: number
  readonly profile: 'fp32' | 'bf16'
  readonly blockSize: number
  readonly kvBytes: number | null
  readonly maxModelLen: number | null
  readonly maxRunning: number
  readonly prefillTokens: number
  readonly prefixCaching: boolean
  readonly routedExperts: boolean
  readonly hasStore: boolean
  readonly slots: { readonly leaving: number; readonly coming: number } | null
  readonly threads: number | null
}

export function hostOptions(options: EngineOptions): HostOptions {
  const { store = null, threads = null, kvBytes = null, maxModelLen = null } = options
  const host: HostOptions = {
    modelFolder: options.modelFolder,
    version: options.version ?? 0,
    profile: options.profile ?? 'fp32',
    blockSize: options.blockSize ?? 16,
    kvBytes,
    maxModelLen,
    maxRunning: options.maxRunning ?? 256,
    prefillTokens: options.prefillTokens ?? 512,
    prefixCaching: options.prefixCaching ?? true,
    routedExperts: options.routedExperts ?? false,
    hasStore: store !== null,
    slots: options.slots ?? null,
    threads,
  }
  for (const [name, value] of Object.entries({
    blockSize: host.blockSize,
    maxRunning: host.maxRunning,
    prefillTokens: host.prefillTokens,
    kvBytes: kvBytes ?? 1,
    maxModelLen: maxModelLen ?? 2,
    'slots.coming': host.slots?.coming ?? 1,
  }))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TrilithonError('CONFIG_VALUE_INVALID', `${name} of the engine is ${value}; it is a whole number above 0`, {
        path: `engine.${name}`,
        hint: 'Give a whole number above 0.',
      })
  return host
}

/** Pages and the longest sequence, from the memory that there is. */
export function sizeCache(
  config: ModelConfig,
  { kvBytes, maxModelLen, blockSize, maxRunning }: HostOptions,
): { blocks: number; maxModelLen: number } {
  if (maxModelLen !== null && maxModelLen > config.maxPositions)
    throw new TrilithonError(
      'CONFIG_VALUE_INVALID',
      `the longest sequence is to have ${maxModelLen} tokens, the model has ${config.maxPositions} positions`,
      {
        path: 'engine.maxModelLen',
        hint: `Give at most ${config.maxPositions}.`,
      },
    )
  const longest = maxModelLen ?? config.maxPositions
  const blockBytes = kvElementsPerToken(config) * blockSize * 4
  const most = Math.ceil(longest / blockSize) * maxRunning
  const bytes = kvBytes ?? Math.min(totalmem() / 4, 4 * 2 ** 30)
  const blocks = Math.min(most, Math.floor(bytes / blockBytes))
  const fitting = Math.min(longest, blocks * blockSize)
  if (blocks < 1 || (maxModelLen !== null && fitting < maxModelLen))
    throw new TrilithonError(
      'CONFIG_VALUE_INVALID',
      `${bytes} bytes hold the keys of ${blocks * blockSize} tokens, a sequence may have ${longest}`,
      {
        path: 'engine.kvBytes',
        hint: `Give at least ${Math.ceil(longest / blockSize) * blockBytes} bytes, or a shorter longest sequence.`,
      },
    )
  return { blocks, maxModelLen: fitting }
}

/** Slots for blocks of these bytes. */
export function countSlots({ slots, hasStore }: HostOptions, slotBytes: number): { readonly leaving: number; readonly coming: number } {
  const fitting = (least: number, most: number, bytes: number) => Math.max(least, Math.min(most, Math.floor(bytes / slotBytes)))
  return slots ?? { leaving: hasStore ? fitting(32, 64, 128 * 2 ** 20) : 0, coming: fitting(4, 16, 32 * 2 ** 20) }
}

const EndIds = z.looseObject({ eos_token_id: z.union([z.int(), z.array(z.int())]).nullish() })

/** End tokens of a model: those of `config.json` and of `generation_config.json`. */
export function readEndIds(folder: string, files: FileLayer): number[] {
  const ids = new Set<number>()
  for (const name of ['config.json', 'generation_config.json']) {
    const path = join(folder, name)
    if (!files.exists(path)) continue
    const file = files.open(path, 'r')
    try {
      const bytes = new Uint8Array(file.size)
      file.read(bytes, 0)
      const { eos_token_id: found } = EndIds.parse(JSON.parse(new TextDecoder().decode(bytes)))
      for (const id of Array.isArray(found) ? found : [found]) if (id != null) ids.add(id)
    } catch (cause) {
      throw new TrilithonError('MODEL_CONFIG_INVALID', `${path} has no readable eos_token_id: ${(cause as Error).message}`, {
        path,
        hint: 'Copy the file again.',
        cause,
      })
    } finally {
      file.close()
    }
  }
  return [...ids]
}
