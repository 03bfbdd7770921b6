import type { IsGiven } from '@trilithon/core'
import type { OrchestratorConfiguration } from './orchestrator-schema.ts'
import { orchestratorPluginKeys } from './plugin-keys.ts'

type Train = OrchestratorConfiguration['train']
type Eval = NonNullable<OrchestratorConfiguration['eval']>

/** Episodes of one worker process of an environment. */
const episodesPerWorker = 256

/** Episodes in flight that follow from a batch of rollouts. */
export function inflightOf(batchSize: number, groupSize: number, oversamplingFactor: number | null): number {
  return Math.max(groupSize, Math.trunc(batchSize * (oversamplingFactor ?? 1)))
}

/** Worker processes of an environment, as the key takes it: what is beyond that is refused where it would be started. */
function workersFor(episodes: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, Math.ceil(episodes / episodesPerWorker)))
}

/** Values of `own` that were not written follow `shared`; keys that `shared` does not have stay. */
function follow<Own extends object>(own: Own, shared: Partial<Own>, written: (key: string) => boolean): Own {
  const followed = Object.entries(shared).filter(([key]) => key in own && !written(key))
  return { ...own, ...Object.fromEntries(followed) }
}

function deriveTrain(config: OrchestratorConfiguration, maxInflight: number | null, isGiven: IsGiven): Train {
  const { train, group_size, advantage, seq_len, training_mode } = config
  const workers = workersFor(maxInflight ?? 1)
  const env = train.env.map((own, index) => {
    const written = (key: string) => isGiven(`train.env.${index}.${key}`)
    const { num_workers, max_retries } = train
    const followed = follow(own, { group_size, advantage, num_workers, max_retries }, written)
    const sampling = follow(own.sampling, train.sampling, (key) => written(`sampling.${key}`))
    const sent = training_mode === 'sft' ? {} : { top_k: -1, min_p: 0, return_token_ids: true }
    return {
      ...followed,
      num_workers: followed.num_workers === 'auto' ? workers : followed.num_workers,
      sampling: { ...sampling, extra_body: { ...sent, ...sampling.extra_body } },
      extra_env_kwargs: { ...own.extra_env_kwargs, max_seq_len: seq_len, ...limitsOf(own) },
    }
  })
  return { ...train, env }
}

function deriveEval(table: Eval, isGiven: IsGiven): Eval {
  const env = table.env.map((own, index) => {
    const written = (key: string) => isGiven(`eval.env.${index}.${key}`)
    const { num_examples, group_size, num_workers, max_retries, interval } = table
    const followed = follow(own, { num_examples, group_size, num_workers, max_retries, interval }, written)
    const episodes = followed.num_examples * followed.group_size
    return {
      ...followed,
      num_workers: followed.num_workers !== 'auto' ? followed.num_workers : followed.num_examples === -1 ? 4 : workersFor(episodes),
      sampling: follow(own.sampling, table.sampling, (key) => written(`sampling.${key}`)),
      extra_env_kwargs: { ...own.extra_env_kwargs, ...limitsOf(own) },
    }
  })
  return { ...table, env }
}

/** The limits of an environment as it reads them itself. */
function limitsOf(env: { readonly max_total_completion_tokens: number; readonly timeout: number | null }): Record<string, number> {
  return {
    max_total_completion_tokens: env.max_total_completion_tokens,
    ...(env.timeout === null ? {} : { timeout_seconds: env.timeout }),
  }
}

/** Monitors of a measurement send no samples. */
function withoutExtras<Monitor extends object>(monitor: Monitor): Monitor {
  return 'log_extras' in monitor ? { ...monitor, log_extras: null } : monitor
}

export function deriveOrchestrator(config: OrchestratorConfiguration, isGiven: IsGiven): OrchestratorConfiguration {
  const { student, tokenizer, bench } = config
  const batchSize = config.batch_size ?? (config.token_batch_size === null ? 128 : null)
  const maxInflight =
    config.max_inflight_rollouts ??
    (batchSize !== null && config.token_batch_size === null ? inflightOf(batchSize, config.group_size, config.oversampling_factor) : null)
  const { wandb, prime_monitor } = orchestratorPluginKeys(config)
  const monitor = prime_monitor && { ...prime_monitor, run_name: prime_monitor.run_name ?? wandb?.name ?? null }
  return {
    ...config,
    tokenizer: {
      ...tokenizer,
      name: tokenizer.name ?? student.model.name,
      trust_remote_code: tokenizer.trust_remote_code ?? student.model.trust_remote_code,
    },
    student: {
      ...student,
      client: {
        ...student.client,
        extra_headers_from_state: { 'X-Session-ID': 'trajectory_id', ...student.client.extra_headers_from_state },
      },
    },
    renderer: config.training_mode === 'sft' && config.teacher !== null ? null : config.renderer,
    batch_size: batchSize,
    max_inflight_rollouts: maxInflight,
    train: deriveTrain(config, maxInflight, isGiven),
    eval: config.eval === null || bench ? null : deriveEval(config.eval, isGiven),
    ...(monitor === null ? {} : { prime_monitor: bench ? withoutExtras(monitor) : monitor }),
    ...(bench ? { max_steps: 4, ...(wandb === null ? {} : { wandb: withoutExtras(wandb) }) } : {}),
  }
}
