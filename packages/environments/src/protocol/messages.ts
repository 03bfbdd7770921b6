import { z } from 'zod'

const numberOrNull = z
  .number()
  .nullish()
  .transform((value) => value ?? null)
const RolloutInput = z.looseObject({
  example_id: z.int(),
  split: z.enum(['train', 'eval']),
  seed: z.number(),
  sampling_seed: numberOrNull,
  rollout_id: z.string(),
  group_id: z.string(),
  api_base_url: z.string(),
  extra_headers: z.record(z.string(), z.string()),
  session: z.string(),
  lease_id: z.string(),
  cache_salt: z.string(),
})

const Renderer = z.looseObject({
  config: z.record(z.string(), z.unknown()).nullable(),
  tokenizer: z.string(),
  model: z.string(),
  chatTemplate: z.looseObject({ text: z.string(), file: z.string() }).nullish(),
})

const shared = {
  client_config: z.looseObject({
    client_type: z.literal('renderer'),
    api_key_var: z.string().nullable(),
    timeout: z.number(),
    connect_timeout: z.number(),
    renderer: Renderer,
  }),
  model: z.string(),
  sampling_args: z.looseObject({
    temperature: numberOrNull,
    top_p: numberOrNull,
    top_k: numberOrNull,
    min_p: numberOrNull,
    max_completion_tokens: numberOrNull,
    extra_body: z.record(z.string(), z.unknown()).default({}),
  }),
  /** Attempts count from here; after the death of a worker another one goes on counting. */
  first_attempt: z.int().min(0),
  max_retries: z.int().min(0),
  state_columns: z.array(z.string()),
  max_seq_len: z.int().min(1),
  max_total_completion_tokens: z.int(),
  /** Milliseconds that are left; null is no limit. */
  deadline_ms: z.number().nullable(),
  routed_experts: z.boolean(),
}

/** What a worker or a server is asked. Names are those of prime-rl's protocol where it has them. */
export const RequestMessage = z.discriminatedUnion('request_type', [
  z.looseObject({ request_type: z.literal('run_rollout'), input: RolloutInput, ...shared }),
  z.looseObject({ request_type: z.literal('run_group'), group_inputs: z.array(RolloutInput).min(1), ...shared }),
  /** A renderer that is named is made, so that one that cannot be is told of at once. */
  z.looseObject({ request_type: z.literal('describe'), renderer: Renderer.nullish() }),
])
export type RequestMessage = z.output<typeof RequestMessage>
export type RunMessage = Exclude<RequestMessage, { request_type: 'describe' }>
export type RolloutInputMessage = z.output<typeof RolloutInput>

/** Inputs of a request, one for each episode. */
export function inputsOf(message: RunMessage): readonly RolloutInputMessage[] {
  return message.request_type === 'run_rollout' ? [message.input] : message.group_inputs
}

/** What is said of an environment that was loaded. */
export interface DescriptionMessage {
  readonly name: string
  readonly scoring: 'rollout' | 'group'
  /** null: endless. */
  readonly tasks: number | null
  readonly eval_tasks: number | null
}

/** The last frame of a request. */
export interface FinalMessage {
  readonly success: boolean
  readonly error: { readonly type: string; readonly message: string } | null
  readonly output?: unknown
  readonly outputs?: readonly unknown[]
}

/** The answer to a probe. A server that was started anew has another `server`. */
export interface PongMessage {
  readonly success: true
  readonly error: null
  readonly server: string
}

/** The payload that asks whether somebody is alive. */
export const pingPayload = 'ping'
