import type { GlmMoeDsaConfig } from '../families/glm-moe-dsa/config.ts'
import type { Qwen3Config } from '../families/qwen3/config.ts'
import type { Qwen3MoeConfig } from '../families/qwen3-moe/config.ts'

/** A model's `config.json`, normalised: one spelling, no missing key, checked. `family` tells the kinds apart. */
export type ModelConfig = Qwen3Config | Qwen3MoeConfig | GlmMoeDsaConfig

export type ModelFamily = ModelConfig['family']
