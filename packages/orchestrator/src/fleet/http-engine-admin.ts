import { TrilithonError } from '@trilithon/core'
import { Agent, request } from 'undici'
import { z } from 'zod'
import { type Clock, systemClock } from '../run/clock.ts'
import type { EngineAdmin } from './engine-admin.ts'

export interface AdminTimeouts {
  readonly connectMs: number
  /** A call that answers from what is there. */
  readonly readMs: number
  /** Pausing waits for the step that runs; flipping and finishing are as short. */
  readonly pauseMs: number
  /** Reading a version. */
  readonly prepareMs: number
  /** Of the first repetition; each next one waits twice as long. */
  readonly backOffMs: number
  /** How often a call is made at most. */
  readonly attempts: number
}

/** Together less than five seconds of waiting: an engine that is broken is told so while a human still looks. */
export const adminTimeouts: AdminTimeouts = {
  ...{ connectMs: 10_000, readMs: 10_000, pauseMs: 30_000, prepareMs: 720_000 },
  ...{ backOffMs: 250, attempts: 5 },
}

export interface HttpEngineAdminOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts?: Partial<AdminTimeouts>
  readonly clock?: Clock
}

const Models = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) })
/** What an engine may say beside its status. */
const Prepared = z.looseObject({ between_steps: z.boolean().default(false) }).nullable()
const Exchanged = z.looseObject({ paused_seconds: z.number().min(0), step_seconds: z.number().min(0) })
const WeightInfo = z.looseObject({ weight_version: z.coerce.number().int().min(0) })

/** An answer that says no: the engine has understood, and the same call again would be answered the same. */
class Refusal extends Error {}

interface Call {
  readonly method?: 'GET' | 'POST'
  readonly body?: unknown
  readonly timeoutMs: number
  /** Defaults to the number of all calls. */
  readonly attempts?: number
  readonly signal?: AbortSignal | undefined
  /** The signal ends repetitions alone, so that the call is made once whatever happens. */
  readonly isOwed?: boolean
}

/** Speaks to engines over HTTP. An answer of 5xx, none in time, and a broken connection are tried again, ever slower; one of 4xx is final. */
export function createHttpEngineAdmin({ headers, timeouts: given, clock = systemClock }: HttpEngineAdminOptions): EngineAdmin {
  const timeouts = { ...adminTimeouts, ...given }
  const agent = new Agent({ connect: { timeout: timeouts.connectMs }, keepAliveTimeout: 10_000 })

  async function once(engine: string, path: string, { method = 'POST', body, timeoutMs, signal, isOwed = false }: Call): Promise<string> {
    const timeout = AbortSignal.timeout(timeoutMs)
    const answer = await request(`${engine}${path}`, {
      ...{ method, dispatcher: agent, headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
      signal: signal === undefined || isOwed ? timeout : AbortSignal.any([timeout, signal]),
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.body.text()
    if (answer.statusCode < 300) return text
    const reason = `${answer.statusCode} ${textOf(text)}`
    if (answer.statusCode >= 500) throw new Error(reason)
    throw new Refusal(reason)
  }

  async function call(engine: string, path: string, options: Call): Promise<string> {
    const { attempts = timeouts.attempts, signal, isOwed = false } = options
    if (!isOwed) signal?.throwIfAborted()
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(engine, path, options)
      } catch (cause) {
        signal?.throwIfAborted()
        if (attempt >= attempts || cause instanceof Refusal) throw engineFailed(engine, path, cause, attempt)
      }
      await clock.sleep(timeouts.backOffMs * 2 ** (attempt - 1), signal)
      signal?.throwIfAborted()
    }
  }

  const post = async (engine: string, path: string, options: Call) => {
    await call(engine, path, options)
  }
  async function ask<T>(engine: string, path: string, schema: z.ZodType<T>, options: Call): Promise<T> {
    return parse(engine, path, schema, await call(engine, path, options))
  }
  const read = { method: 'GET', timeoutMs: timeouts.readMs } as const
  const { pauseMs, prepareMs } = timeouts

  return {
    isHealthy: (engine, signal) =>
      call(engine, '/health', { ...read, attempts: 1, signal }).then(
        () => true,
        () => false,
      ),
    models: async (engine, signal) => (await ask(engine, '/v1/models', Models, { ...read, signal })).data.map(({ id }) => id),
    version: async (engine, signal) => (await ask(engine, '/weight_info', WeightInfo, { ...read, signal })).weight_version,
    async prepare(engine, version, path, signal) {
      const said = await ask(engine, '/start_weight_update', Prepared, { timeoutMs: prepareMs, body: { version, path }, signal })
      return { betweenSteps: said?.between_steps ?? false }
    },
    async exchange(engine, version, signal) {
      const body = { update_info: { version, between_steps: true } }
      const { paused_seconds, step_seconds } = await ask(engine, '/update_weights', Exchanged, { timeoutMs: pauseMs, body, signal })
      return { pausedSeconds: paused_seconds, stepSeconds: step_seconds }
    },
    pause: (engine, signal) => post(engine, '/pause?mode=keep', { timeoutMs: pauseMs, signal }),
    flip: (engine, version, signal) => post(engine, '/update_weights', { timeoutMs: pauseMs, body: { update_info: { version } }, signal }),
    resume: (engine, signal) => post(engine, '/resume', { timeoutMs: pauseMs, signal, isOwed: true }),
    finish: (engine, version, signal) =>
      post(engine, '/finish_weight_update', { timeoutMs: pauseMs, body: { weight_version: String(version) }, signal }),
    load: async (engine) => {
      const text = await call(engine, '/metrics', { ...read, attempts: 1 })
      return {
        running: gauge(text, 'num_requests_running'),
        waiting: gauge(text, 'num_requests_waiting'),
        kvUsage: gauge(text, 'kv_cache_usage_perc'),
        prefixQueries: gauge(text, 'prefix_cache_queries_total'),
        prefixHits: gauge(text, 'prefix_cache_hits_total'),
        generatedTokens: gauge(text, 'generation_tokens_total'),
        preemptions: gauge(text, 'num_preemptions_total'),
      }
    },
    dispose: () => agent.destroy(),
  }
}

/** The sum of a gauge or counter of vLLM over its labels. */
function gauge(text: string, name: string): number {
  let sum = 0
  for (const [, value] of text.matchAll(new RegExp(`^vllm:${name}(?:\\{[^}]*\\})? ([0-9.eE+-]+)$`, 'gm'))) sum += Number(value)
  return sum
}

/** What an engine says of its failure: the message of its answer where it has vLLM's shape, or the first of the text. */
function textOf(body: string): string {
  try {
    const { error } = JSON.parse(body) as { readonly error?: { readonly message?: unknown } }
    if (typeof error?.message === 'string') return error.message
  } catch {
    // Not every server answers JSON; the text itself is told then.
  }
  return body.trim().slice(0, 500)
}

function parse<T>(engine: string, path: string, schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text || 'null'))
  } catch (cause) {
    throw engineFailed(engine, path, new Error(`it answered ${text.slice(0, 200)}`, { cause }), 1)
  }
}

function engineFailed(engine: string, path: string, cause: unknown, attempts: number): TrilithonError {
  const { message, cause: inner } = cause as Error
  const reason = message || (inner as Error | undefined)?.message || String(cause)
  const times = attempts === 1 ? '' : ` (${attempts} times)`
  return new TrilithonError('ENGINE_FAILED', `${engine}${path.split('?', 1)[0]} failed${times}: ${reason}`, {
    path: engine,
    hint: 'Look into the log of the engine.',
    cause,
  })
}
