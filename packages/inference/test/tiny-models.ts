/** Small models of every family, in folders, and what the packed forward says of them. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpaquePayload } from '@trilithon/core'
import { createModel, createPackedContext, type Model, parseModelConfig, saveModel } from '@trilithon/models'
import { scope, toArray } from '@trilithon/tensor'
import { type TinyFamily, tinyModelJson } from '@trilithon/testing'

/** Larger than those that are checked in double precision: room for long prompts, and candidates to choose from. */
const sizes = { vocab_size: 61, hidden_size: 16, intermediate_size: 24, max_position_embeddings: 512 }
const tinyJson = {
  qwen3: { ...tinyModelJson.qwen3, ...sizes, head_dim: 8 },
  qwen3_moe: { ...tinyModelJson.qwen3_moe, ...sizes, head_dim: 8, moe_intermediate_size: 12, num_hidden_layers: 3, num_experts: 6 },
  glm_moe_dsa: { ...tinyModelJson.glm_moe_dsa, ...sizes, moe_intermediate_size: 12, index_topk: 8 },
} as const

export function tinyModel(family: TinyFamily, seed: number, changes: object = {}): Model {
  const json = { ...tinyJson[family], ...changes }
  return createModel(parseModelConfig(json, 'config.json'), { seed, configText: JSON.stringify(json) })
}

/** Folders that one test file writes to. */
export class TestFolders {
  readonly root = mkdtempSync(join(tmpdir(), 'trilithon-engine-'))

  /** A model of this seed in a folder. */
  model(family: TinyFamily, seed: number, changes: object = {}, name = `${family}-${seed}`): string {
    const folder = join(this.root, name)
    if (existsSync(folder)) return folder
    const model = tinyModel(family, seed, changes)
    saveModel(model, folder)
    model.dispose()
    return folder
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** Log-probability of every token but the first, by the trainer's packed forward, and the routed experts of every row. */
export function packedScores(
  model: Model,
  ids: ArrayLike<number>,
  temperature = 1,
): { readonly logprobs: Float32Array; readonly routes: OpaquePayload | null } {
  return scope(() => {
    const { hidden, routes } = model.forward(ids, createPackedContext([ids.length]), { recordRoutes: true })
    const targets = [...Array.from(ids).slice(1), 0]
    const logprobs = toArray(model.score(hidden, targets, { temperature: temperature === 0 ? 1 : temperature }).logprobs) as Float32Array
    return { logprobs: logprobs.slice(0, -1), routes }
  })
}
