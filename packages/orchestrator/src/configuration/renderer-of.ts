/**
 * Models by the renderer that writes exactly what their chat template does. Full names only: a fine-tune may have another template than its base.
 */
const modelsByRenderer: Readonly<Record<string, readonly string[]>> = {
  qwen3: [
    'Qwen/Qwen3-0.6B',
    'Qwen/Qwen3-1.7B',
    'Qwen/Qwen3-4B',
    'Qwen/Qwen3-4B-Instruct-2507',
    'Qwen/Qwen3-4B-Thinking-2507',
    'Qwen/Qwen3-8B',
    'Qwen/Qwen3-14B',
    'Qwen/Qwen3-32B',
    'Qwen/Qwen3-30B-A3B',
    'Qwen/Qwen3-30B-A3B-Instruct-2507',
    'Qwen/Qwen3-30B-A3B-Thinking-2507',
    'Qwen/Qwen3-235B-A22B',
  ],
  'qwen3.5': [
    'Qwen/Qwen3.5-0.8B',
    'Qwen/Qwen3.5-2B',
    'Qwen/Qwen3.5-4B',
    'Qwen/Qwen3.5-9B',
    'Qwen/Qwen3.5-35B-A3B',
    'Qwen/Qwen3.5-122B-A10B',
    'Qwen/Qwen3.5-397B-A17B',
  ],
  'qwen3.6': ['Qwen/Qwen3.6-35B-A3B'],
  'qwen3-vl': ['Qwen/Qwen3-VL-4B-Instruct', 'Qwen/Qwen3-VL-8B-Instruct', 'Qwen/Qwen3-VL-30B-A3B-Instruct'],
  'glm-5': ['zai-org/GLM-5', 'zai-org/GLM-5-FP8', 'zai-org/GLM-4.7-Flash'],
  'glm-5.1': ['zai-org/GLM-5.1', 'zai-org/GLM-5.1-FP8'],
  'glm-4.5': ['THUDM/GLM-4.5-Air', 'zai-org/GLM-4.5-Air'],
  'minimax-m2': ['MiniMaxAI/MiniMax-M2', 'MiniMaxAI/MiniMax-M2.5'],
  'deepseek-v3': ['deepseek-ai/DeepSeek-V3', 'deepseek-ai/DeepSeek-V3-Base'],
  'kimi-k2': ['moonshotai/Kimi-K2-Instruct'],
  'kimi-k2.5': ['moonshotai/Kimi-K2.5', 'moonshotai/Kimi-K2.6'],
  'nemotron-3': ['nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16', 'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16'],
  'laguna-xs.2': ['poolside/Laguna-XS.2'],
  'gpt-oss': ['openai/gpt-oss-20b', 'openai/gpt-oss-120b'],
}

/** The renderer that `auto` means for a tokeniser of that name; undefined where none is known. */
export function rendererOf(tokenizerName: string): string | undefined {
  return Object.keys(modelsByRenderer).find((renderer) => modelsByRenderer[renderer]?.includes(tokenizerName))
}
