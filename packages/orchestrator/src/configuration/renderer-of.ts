const thirdParties: readonly (readonly [pattern: RegExp, renderer: string])[] = [
  [/^Qwen\/Qwen3-VL-/, 'qwen3-vl'],
  [/^Qwen\/Qwen3\.5-/, 'qwen3.5'],
  [/^Qwen\/Qwen3\.6-/, 'qwen3.6'],
  [/^Qwen\/Qwen3-/, 'qwen3'],
  [/^zai-org\/GLM-4\.[5-7]/, 'glm-4.5'],
  [/^zai-org\/GLM-5\.1/, 'glm-5.1'],
  [/^zai-org\/GLM-5/, 'glm-5'],
  [/^openai\/gpt-oss-/, 'gpt-oss'],
  [/^moonshotai\/Kimi-K2\.5/, 'kimi-k2.5'],
  [/^moonshotai\/Kimi-K2/, 'kimi-k2'],
  [/^MiniMaxAI\/MiniMax-M2/, 'minimax-m2'],
  [/^nvidia\/NVIDIA-Nemotron-3-/, 'nemotron-3'],
  [/^deepseek-ai\/DeepSeek-V3/, 'deepseek-v3'],
]

/** The renderer that `auto` means for a tokeniser of that name; undefined where none is known. */
export function rendererOf(tokenizerName: string): string | undefined {
  return thirdParties.find(([pattern]) => pattern.test(tokenizerName))?.[1]
}
