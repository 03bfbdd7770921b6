/** Budget: 120 s. The real trainer and the real orchestrator as objects over the files of a run; engines, environments and time are played. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { type CreateMatrixTrainer, type FileBatch, matrixCases, runMatrixCase, takeBatches } from '@trilithon/orchestrator/fakes'
import { createRlTrainer, prepareRl } from '@trilithon/trainer'
import type { TrainerConfiguration } from '@trilithon/trainer/configuration'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compose } from '../../src/compose/compose.ts'

/** Two layers, of which one has experts, and sparse attention. */
const model = {
  ...{ model_type: 'glm_moe_dsa', vocab_size: 20, hidden_size: 16, num_attention_heads: 2, intermediate_size: 24, num_hidden_layers: 2 },
  ...{ max_position_embeddings: 64, rms_norm_eps: 1e-6, rope_theta: 100, initializer_range: 0.3, q_lora_rank: 8, kv_lora_rank: 6 },
  ...{ qk_nope_head_dim: 4, qk_rope_head_dim: 4, v_head_dim: 4, n_routed_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 6 },
  ...{ n_shared_experts: 1, first_k_dense_replace: 1, index_n_heads: 8, index_head_dim: 4, index_topk: 4 },
}

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'matrix-'))
  mkdirSync(join(folder, 'model'))
  writeFileSync(join(folder, 'model', 'config.json'), JSON.stringify(model))
})
afterAll(() => rmSync(folder, { recursive: true }))

const createRouter = () => stickyRouter.create({ config: {} } as never) as Router

const realTrainer =
  (bound: number): CreateMatrixTrainer =>
  (options) => {
    const { run, firstStep, maxSteps } = options
    const trained: FileBatch[] = []
    return {
      trained,
      async run(signal) {
        const flags = [
          ...['--model.name=model', '--model.seq-len=32', '--model.debug.random-init', `--output-dir=${run}`, `--max-steps=${maxSteps}`],
          ...[`--max-off-policy-steps=${bound}`, '--ckpt.interval=1', ...(firstStep > 0 ? [`--ckpt.resume-step=${firstStep}`] : [])],
        ]
        const { resolved } = await compose({ root: 'trainer', argv: flags, workingDirectory: folder, environment: {} })
        const config = resolved.trainer as unknown as TrainerConfiguration
        const setup = prepareRl({ config, workingDirectory: folder, environment: {} })
        const trainer = await createRlTrainer({ setup })
        try {
          await takeBatches(options, signal, async (batch) => {
            await trainer.step(batch)
            trained.push(batch)
          })
          trainer.finish()
        } finally {
          trainer.dispose()
        }
      },
    }
  }

describe('first step, last step, resume: the real trainer and orchestrator', () => {
  it.each(matrixCases)('$transport, $steps steps, level $level, bound $bound, resumed $isResume', async (one) => {
    const { trained, lags, version, pausedAtEnd } = await runMatrixCase(one, realTrainer(one.bound), createRouter)
    const last = one.steps + (one.isResume ? 1 : 0)
    expect(trained.map(({ step, samples }) => [step, samples.length])).toEqual(Array.from({ length: last }, (_, step) => [step, 4]))
    const ids = trained.flatMap(({ samples }) => samples.map(({ id }) => id))
    expect(ids.every((id) => id !== '')).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
    expect(Math.max(...lags)).toBeLessThanOrEqual(one.level === 0 ? 0 : one.bound)
    expect(version).toBe(last)
    expect(pausedAtEnd).toBe(false)
  })
})
