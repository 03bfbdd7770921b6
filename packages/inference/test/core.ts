/** An engine without a thread, stepped by hand. */
import { nodeFiles } from '@trilithon/models'
import type { TinyFamily } from '@trilithon/testing'
import { openWeights } from '@trilithon/transport'
import type { EngineRequest } from '../src/engine/engine.ts'
import { EngineCore, type EngineCoreOptions } from '../src/engine/engine-core.ts'
import { type CoreReport, tokenWords } from '../src/engine/engine-messages.ts'
import { SharedStats } from '../src/engine/shared-stats.ts'
import { tinyModel } from './tiny-models.ts'

export function coreOf(family: TinyFamily, changes: Partial<EngineCoreOptions> = {}, seed = 1): EngineCore {
  const stats = new SharedArrayBuffer(SharedStats.bytes)
  new SharedStats(stats).begin()
  return new EngineCore({
    model: tinyModel(family, seed),
    version: 0,
    path: 'start',
    profile: 'fp32',
    blockSize: 4,
    blocks: 64,
    maxModelLen: 128,
    maxRunning: 64,
    prefillTokens: 512,
    prefixCaching: true,
    routedExperts: true,
    endIds: [],
    slots: null,
    hasStore: false,
    stats,
    files: nodeFiles,
    openWeights,
    ...changes,
  })
}

/** The tokens of a report by handle. */
export function tokensOf(report: CoreReport | null): Map<number, number[]> {
  const tokens = new Map<number, number[]>()
  const words = report?.tokens ?? new Uint32Array(0)
  for (let at = 0; at < words.length; at += tokenWords) {
    const handle = words[at] as number
    tokens.set(handle, [...(tokens.get(handle) ?? []), words[at + 1] as number])
  }
  return tokens
}

export function submit(core: EngineCore, handle: number, request: EngineRequest): void {
  core.submit({ ...request, handle, imported: null })
}
