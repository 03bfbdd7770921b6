import { ModelTable } from '@trilithon/core'
import { z } from 'zod'

/** How the orchestrator reaches the engines of one model. */
export const ClientTable = z.strictObject({
  timeout: z.int().min(1).default(1200).describe('Seconds that a request may take.'),
  connect_timeout: z.number().gt(0).default(30).describe('Seconds in which a connection must stand.'),
  wait_for_ready_timeout: z.int().min(1).default(1800).describe('Seconds that the engines may take to start.'),
  recovery_timeout_seconds: z
    .int()
    .min(0)
    .default(0)
    .describe(
      'Seconds that a run waits for one of its engines to come back when none is left; 0 ends it with the last. `rl` takes `wait_for_ready_timeout` where it starts engines again.',
    ),
  base_url: z.array(z.string().min(1)).default(['http://localhost:8000/v1']).describe('URLs of the engines, or of a router before them.'),
  api_key_var: z.string().min(1).default('VLLM_API_KEY').describe('Variable of the environment that holds the key.'),
  headers: z.record(z.string(), z.string()).default({}).describe('Headers of every request.'),
  headers_from_env: z.record(z.string(), z.string()).default({}).describe('Headers whose value is in a variable of the environment.'),
  extra_headers_from_state: z
    .record(z.string(), z.string())
    .default({})
    .describe('Headers whose value is a field of the episode; the student also gets `X-Session-ID`.'),
  skip_model_check: z.boolean().default(false).describe('Do not ask the engines whether they serve the model.'),
  dp_rank_count: z.int().min(1).default(1).describe('Data ranks behind each URL; set from the deployment.'),
  admin_base_url: z
    .array(z.string().min(1))
    .nullable()
    .default(null)
    .describe('URLs for weight updates, where they differ from those of requests; null uses `base_url`.'),
  elastic: z
    .strictObject({
      hostname: z.string().min(1).describe('DNS name whose addresses are the engines.'),
      port: z.int().min(1).max(65535).default(8000).describe('TCP port of each engine.'),
      sync_interval: z.number().gt(0).default(5).describe('Seconds between two look-ups.'),
    })
    .nullable()
    .default(null)
    .meta({
      description: 'Find the engines by DNS; `base_url` is then not used. null uses `base_url`.',
      unavailable: 'Engines are not found by DNS yet.',
    }),
  router_url: z.string().min(1).nullable().default(null).describe('URL of a router process before the engines; null has none.'),
})

/** A model and the engines that serve it. */
export const PolicyTable = z.strictObject({
  model: ModelTable.prefault({}).describe('The model.'),
  client: ClientTable.prefault({}).describe('The engines that serve it.'),
})
