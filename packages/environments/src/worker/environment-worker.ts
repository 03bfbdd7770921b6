import type { Logger, Turn } from '@trilithon/core'
import { GenerateClient } from '../client/generate-client.ts'
import { EpisodeFailure } from '../episode/episode-failure.ts'
import { type EpisodePlan, runEpisodes } from '../episode/run-episodes.ts'
import type { LoadedEnvironment } from '../load/load-environment.ts'
import {
  type DescriptionMessage,
  type FinalMessage,
  inputsOf,
  type RequestMessage,
  type RolloutInputMessage,
  type RunMessage,
} from '../protocol/messages.ts'
import type { RequestContext } from '../protocol/serve-frames.ts'
import { encodeTurn } from '../protocol/turn-message.ts'
import type { CreateTurnRenderer, RendererDescription, TurnRenderer } from '../turn-renderer.ts'

export interface EnvironmentWorkerOptions {
  readonly environment: LoadedEnvironment
  readonly createTurnRenderer: CreateTurnRenderer
  readonly log: Logger
  readonly logsData: boolean
}

/** Runs episodes of one environment for whoever asks. Renderers and connections are made once per description. */
export class EnvironmentWorker {
  readonly #options: EnvironmentWorkerOptions
  readonly #renderers = new Map<string, Promise<TurnRenderer>>()
  readonly #clients = new Map<string, GenerateClient>()

  constructor(options: EnvironmentWorkerOptions) {
    this.#options = options
  }

  async handle(message: RequestMessage, context: RequestContext): Promise<FinalMessage> {
    if (message.request_type === 'describe') {
      if (message.renderer) await this.#rendererOf(message.renderer as RendererDescription)
      return { success: true, error: null, output: describeEnvironment(this.#options.environment) }
    }
    const outputs = await this.#run(message, context)
    return message.request_type === 'run_rollout'
      ? { success: true, error: null, output: outputs[0] }
      : { success: true, error: null, outputs }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.close()))
    this.#clients.clear()
  }

  async #run(message: RunMessage, { signal, emit }: RequestContext): Promise<unknown[]> {
    const { environment, log, logsData } = this.#options
    const inputs = inputsOf(message)
    const controller = new AbortController()
    const cancel = () => controller.abort(new EpisodeFailure('Cancelled', 'nobody waits for the episode any more'))
    signal.addEventListener('abort', cancel, { once: true })
    /** The turn before, of the attempt that runs. */
    const before: { attempt: number; turn: Turn | undefined; count: number }[] = inputs.map(() => ({
      attempt: -1,
      turn: undefined,
      count: 0,
    }))
    try {
      const outputs = await runEpisodes({
        environment,
        plans: inputs.map((input) => planOf(input, message)),
        renderer: await this.#rendererOf(message.client_config.renderer as RendererDescription),
        client: this.#clientOf(message.client_config),
        signal: controller.signal,
        deadlineMs: message.deadline_ms,
        firstAttempt: message.first_attempt,
        maxRetries: message.max_retries,
        stateColumns: message.state_columns,
        logsData,
        log,
        onTurn: (episode, attempt, turn) => {
          const last = before[episode]
          if (last === undefined) return
          emit(encodeTurn(turn, last.attempt === attempt ? last.turn : undefined, episode, attempt))
          before[episode] = { attempt, turn, count: last.attempt === attempt ? last.count + 1 : 1 }
        },
      })
      return outputs.map((output, episode) => {
        const { attempt = -1, count = 0 } = before[episode] ?? {}
        return { ...output, numTurns: attempt === output.attempt ? count : 0 }
      })
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  /** A renderer that cannot be made is made again for the next request: a folder may be there by then. */
  #rendererOf(description: RendererDescription): Promise<TurnRenderer> {
    const key = JSON.stringify(description)
    const known = this.#renderers.get(key)
    if (known !== undefined) return known
    const made = (async () => this.#options.createTurnRenderer(description))()
    this.#renderers.set(key, made)
    made.catch(() => this.#renderers.delete(key))
    return made
  }

  #clientOf({ timeout, connect_timeout }: { timeout: number; connect_timeout: number }): GenerateClient {
    const key = `${timeout}/${connect_timeout}`
    const known = this.#clients.get(key)
    if (known !== undefined) return known
    const client = new GenerateClient({ timeoutS: timeout, connectTimeoutS: connect_timeout })
    this.#clients.set(key, client)
    return client
  }
}

export function describeEnvironment({ name, definition, size }: LoadedEnvironment): DescriptionMessage {
  return { name, scoring: definition.scoring ?? 'rollout', tasks: size.train, eval_tasks: size.eval }
}

function planOf(input: RolloutInputMessage, message: RunMessage): EpisodePlan {
  const { api_key_var } = message.client_config
  const key = api_key_var === null ? undefined : process.env[api_key_var]
  return {
    rolloutId: input.rollout_id,
    split: input.split,
    index: input.example_id,
    seed: input.seed,
    samplingSeed: input.sampling_seed,
    baseUrl: input.api_base_url,
    headers: {
      ...(key === undefined || key === '' ? {} : { authorization: `Bearer ${key}` }),
      ...input.extra_headers,
      'x-session-id': input.session,
    },
    model: message.model,
    salt: input.cache_salt,
    sampling: message.sampling_args,
    maxSeqLen: message.max_seq_len,
    maxTotalCompletionTokens: message.max_total_completion_tokens,
    wantsRoutedExperts: message.routed_experts,
  }
}
