import { z } from 'zod'

const thinking = {
  preserve_all_thinking: z.boolean().default(false).describe('Keep the thinking of every past turn in the prompt.'),
  preserve_thinking_between_tool_calls: z
    .boolean()
    .default(false)
    .describe('Keep the thinking of turns since the last user message, so that a chain of tool calls keeps its reasoning.'),
}

const enableThinking = z
  .boolean()
  .nullable()
  .default(null)
  .describe('Ask the chat template for a thinking turn; null takes the default of the template.')

/** Renderers written for one family of models. */
export const modelRenderers = [
  'qwen3',
  'qwen3-vl',
  'qwen3.5',
  'qwen3.6',
  'glm-4.5',
  'glm-5',
  'glm-5.1',
  'gpt-oss',
  'kimi-k2',
  'kimi-k2.5',
  'minimax-m2',
  'nemotron-3',
  'deepseek-v3',
  'laguna-xs.2',
] as const

/** How messages become token ids; the union is on `name`. `default` passes keys it does not know on to the chat template. */
export const RendererVariants = z.discriminatedUnion('name', [
  z.strictObject({ name: z.literal('auto').describe('The renderer of the model, found by the name of its tokeniser.'), ...thinking }),
  z.looseObject({
    name: z.literal('default').describe("The model's own chat template."),
    tool_parser: z.string().nullable().default(null).describe('Parser of tool calls in the answer; null finds none.'),
    reasoning_parser: z.string().nullable().default(null).describe('Parser of thinking in the answer; null finds none.'),
    ...thinking,
  }),
  ...modelRenderers.map((name) =>
    z.strictObject({ name: z.literal(name).describe(`The renderer of ${name}.`), ...thinking, enable_thinking: enableThinking }),
  ),
])
