import { TrilithonError } from '@trilithon/core'
import type { z } from 'zod'
import { GlmMoeDsaKeys, glmMoeDsaConfig } from '../families/glm-moe-dsa/config.ts'
import { Qwen3Keys, qwen3Config } from '../families/qwen3/config.ts'
import { Qwen3MoeKeys, qwen3MoeConfig } from '../families/qwen3-moe/config.ts'
import type { ConfigParse } from './config-parse.ts'
import type { ModelConfig, ModelFamily } from './model-config.ts'

/** By `model_type`: the keys that are read, and what they become. */
const families: Readonly<Record<ModelFamily, (json: unknown) => ConfigParse<ModelConfig> | { issues: z.core.$ZodIssue[] }>> = {
  qwen3: (json) => parse(Qwen3Keys, json, qwen3Config),
  qwen3_moe: (json) => parse(Qwen3MoeKeys, json, qwen3MoeConfig),
  glm_moe_dsa: (json) => parse(GlmMoeDsaKeys, json, glmMoeDsaConfig),
}

function parse<Keys extends z.ZodType>(schema: Keys, json: unknown, make: (keys: z.output<Keys>) => ConfigParse<ModelConfig>) {
  const result = schema.safeParse(json)
  return result.success ? make(result.data) : { issues: result.error.issues }
}

/**
 * Normalises a `config.json`. `file` is for messages only. Throws `MODEL_UNSUPPORTED` for a `model_type` that no family here has, and
 * `MODEL_CONFIG_INVALID` for a file that its family cannot be built from.
 */
export function parseModelConfig(json: unknown, file: string): ModelConfig {
  const type = typeof json === 'object' && json !== null && 'model_type' in json ? json.model_type : undefined
  if (typeof type !== 'string' || !Object.hasOwn(families, type)) {
    throw new TrilithonError('MODEL_UNSUPPORTED', `${file}: model_type ${JSON.stringify(type)} is not supported`, {
      path: file,
      hint: `Supported: ${Object.keys(families).join(', ')}.`,
    })
  }
  const parsed = families[type as ModelFamily](json)
  if ('config' in parsed) return parsed.config
  const faults =
    'fault' in parsed ? [parsed.fault] : parsed.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`)
  throw new TrilithonError('MODEL_CONFIG_INVALID', `${file} is no configuration of ${type}: ${faults.join('; ')}`, {
    path: file,
    hint: 'Correct the file, or take the one of the checkpoint.',
    details: { faults },
  })
}
