import type { RolloutInputMessage, RunMessage } from '../protocol/messages.ts'
import type { EnvironmentPoolOptions, EpisodeRequest } from './environment-pool.ts'

type Settings = Pick<
  EnvironmentPoolOptions,
  'client' | 'renderer' | 'maxRetries' | 'stateColumns' | 'maxTotalCompletionTokens' | 'timeoutS'
>

/** The request of one episode; what is the same for all of a pool comes from its options. */
export function rolloutMessage(episode: EpisodeRequest, settings: Settings): RunMessage {
  return { request_type: 'run_rollout', input: inputOf(episode), ...sharedOf(episode, settings) }
}

/** The request of a group: what its episodes share is taken from the first. */
export function groupMessage(episodes: readonly [EpisodeRequest, ...EpisodeRequest[]], settings: Settings): RunMessage {
  return { request_type: 'run_group', group_inputs: episodes.map(inputOf), ...sharedOf(episodes[0], settings) }
}

function inputOf(episode: EpisodeRequest): RolloutInputMessage {
  return {
    example_id: episode.taskIndex,
    split: episode.split,
    seed: episode.seed,
    sampling_seed: episode.samplingSeed ?? null,
    rollout_id: episode.rolloutId,
    group_id: episode.groupId,
    api_base_url: episode.baseUrl,
    extra_headers: episode.headers as Record<string, string>,
    session: episode.session,
    lease_id: episode.lease.id,
    cache_salt: episode.salt,
  }
}

function sharedOf({ model, sampling, maxSeqLen, wantsRoutedExperts, apiKeyVar, lease }: EpisodeRequest, settings: Settings) {
  const { client = {}, renderer, maxRetries = 3, stateColumns = [], maxTotalCompletionTokens = -1, timeoutS } = settings
  const deadlineMs = Math.min(timeoutS == null ? Number.POSITIVE_INFINITY : timeoutS * 1000, lease.deadlineMs ?? Number.POSITIVE_INFINITY)
  const { temperature, top_p = null, top_k = null, min_p = null, max_completion_tokens = null, extra_body = {} } = sampling
  return {
    client_config: {
      client_type: 'renderer' as const,
      api_key_var: apiKeyVar,
      timeout: client.timeoutS ?? 1200,
      connect_timeout: client.connectTimeoutS ?? 30,
      renderer: { ...renderer, config: renderer.config as Record<string, unknown> | null, chatTemplate: renderer.chatTemplate ?? null },
    },
    model,
    sampling_args: { temperature, top_p, top_k, min_p, max_completion_tokens, extra_body: extra_body as Record<string, unknown> },
    first_attempt: 0,
    max_retries: maxRetries,
    state_columns: [...stateColumns],
    max_seq_len: maxSeqLen,
    max_total_completion_tokens: maxTotalCompletionTokens,
    deadline_ms: Number.isFinite(deadlineMs) ? deadlineMs : null,
    routed_experts: wantsRoutedExperts,
  }
}
