import { z } from 'zod'

const thinking = {
  preserve_all_thinking: z.boolean().default(false).describe('Keep the thinking of every past turn in the prompt.'),
  preserve_thinking_between_tool_calls: z
    .boolean()
    .default(false)
    .describe('Keep the thinking of turns since the last user message, so that a chain of tool calls keeps its reasoning.'),
}
const flag = (value: boolean, meaning: string) => z.boolean().default(value).describe(meaning)
const ownDefault = (schema: z.ZodType, meaning: string) =>
  schema.nullable().default(null).describe(`${meaning}; null is the default of the template.`)

const enable_thinking = ownDefault(z.boolean(), 'Ask for a thinking turn')
const image_cache_max = z.int().min(0).default(256).describe('Pictures whose features are kept.')
const add_vision_id = flag(false, 'Number the pictures in the prompt.')
const clear_thinking = flag(true, 'Drop the thinking of past turns.')
const model_identity = ownDefault(z.string(), 'Who the model says it is')

/** Renderers written for one family of models, with the keys that each has besides those on thinking. */
const modelRenderers: Readonly<Record<string, z.ZodRawShape>> = {
  qwen3: { enable_thinking },
  'qwen3-vl': { add_vision_id, image_cache_max },
  'qwen3.5': { enable_thinking, add_vision_id, image_cache_max },
  'qwen3.6': { enable_thinking, add_vision_id, image_cache_max },
  'glm-4.5': { enable_thinking },
  'glm-5': { enable_thinking, clear_thinking },
  'glm-5.1': { enable_thinking, clear_thinking },
  'gpt-oss': {
    reasoning_effort: z.enum(['low', 'medium', 'high']).default('medium').describe('How long the model thinks.'),
    conversation_start_date: ownDefault(z.string(), 'Date that the prompt names'),
    use_system_prompt: flag(true, 'Begin with the system prompt of the family.'),
    knowledge_cutoff: ownDefault(z.string(), 'Month that the prompt names as the end of knowledge'),
    model_identity,
  },
  'kimi-k2': { enable_thinking },
  'kimi-k2.5': { thinking: flag(true, 'Ask for a thinking turn.'), image_cache_max },
  'minimax-m2': { model_identity },
  'nemotron-3': { enable_thinking, truncate_history_thinking: flag(true, 'Drop the thinking of past turns.') },
  'deepseek-v3': { enable_thinking },
  'laguna-xs.2': { enable_thinking, render_assistant_messages_raw: flag(false, 'Write past answers as they came.') },
}

/** Families whose renderer exists (`renderers/src/create-renderer.ts`). */
const built = ['qwen3', 'glm-5', 'glm-5.1']

/** How messages become token ids; the union is on `name`. `default` passes keys that it does not know on to the chat template. */
export const RendererVariants = z.discriminatedUnion('name', [
  z.strictObject({ name: z.literal('auto').describe('The renderer of the model, found by the name of its tokeniser.'), ...thinking }),
  z.looseObject({
    name: z.literal('default').describe("The model's own chat template."),
    tool_parser: z.string().nullable().default(null).describe('Parser of tool calls in the answer; null finds none.'),
    reasoning_parser: z.string().nullable().default(null).describe('Parser of thinking in the answer; null finds none.'),
    ...thinking,
  }),
  ...Object.entries(modelRenderers).map(([name, keys]) => {
    const variant = z.strictObject({ name: z.literal(name).describe(`The renderer of ${name}.`), ...thinking, ...keys })
    return built.includes(name) ? variant : variant.meta({ unavailable: `The renderer ${name} is not built yet.` })
  }),
])
