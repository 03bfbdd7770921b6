import { type TinyFamily, tinyModelJson } from '@trilithon/testing'
import { type ModelConfig, parseModelConfig } from '../src/index.ts'

export function tinyConfig(family: TinyFamily, changes: object = {}): ModelConfig {
  return parseModelConfig({ ...tinyModelJson[family], ...changes }, `${family}.json`)
}
