import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { EngineInfo, EngineStats } from '../engine/engine.ts'
import { iterationBounds } from '../engine/shared-stats.ts'
import { CountedHistogram } from './counted-histogram.ts'
import type { Completion, Generation, GenerationObserver } from './generation.ts'
import type { StatsReader, StatsView } from './stats-reader.ts'

const tokenBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
const firstTokenBuckets = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560]
const gapBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
const durationBuckets = [
  0.005, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
]

/** Gauges by name with their help; vLLM's names and meaning. */
const gauges: Readonly<Record<string, readonly [string, (stats: EngineStats, info: EngineInfo) => number]>> = {
  'vllm:num_requests_running': ['Requests in the running batch.', ({ running }) => running],
  'vllm:num_requests_waiting': ['Requests that wait for their turn.', ({ waiting }) => waiting],
  'vllm:kv_cache_usage_perc': [
    'Share of the KV blocks that requests hold, 0 to 1.',
    (stats, info) => stats.usedBlocks / Math.max(1, info.blocks),
  ],
  'trilithon:weight_version': ['Version of the weights that serve.', ({ version }) => version],
  'trilithon:paused': ['1 while generation is paused.', ({ isPaused }) => Number(isPaused)],
  'trilithon:cached_blocks': ['KV blocks that are kept for a later request.', ({ cachedBlocks }) => cachedBlocks],
  'trilithon:oldest_version_served': [
    'Oldest version whose KV a request was served since the last look; the version that serves where there was none.',
    ({ oldestVersionServed, version }) => oldestVersionServed ?? version,
  ],
}

const counters: Readonly<Record<string, readonly [string, (stats: EngineStats) => number]>> = {
  'vllm:prefix_cache_queries_total': ['Prompt tokens that were looked up in the prefix cache.', ({ prefixQueries }) => prefixQueries],
  'vllm:prefix_cache_hits_total': ['Prompt tokens that were found in the prefix cache.', ({ prefixHits }) => prefixHits],
  'vllm:external_prefix_cache_queries_total': ['Prompt tokens that were looked up in the KV store.', ({ storeQueries }) => storeQueries],
  'vllm:external_prefix_cache_hits_total': ['Prompt tokens that came back from the KV store.', ({ storeHits }) => storeHits],
  'vllm:num_preemptions_total': ['Requests that lost their KV and began again.', ({ preemptions }) => preemptions],
  'vllm:prompt_tokens_total': ['Prompt tokens.', ({ promptTokens }) => promptTokens],
  'vllm:generation_tokens_total': ['Generated tokens.', ({ generatedTokens }) => generatedTokens],
  'trilithon:engine_steps_total': ['Steps of the engine.', ({ steps }) => steps],
  'trilithon:scheduler_seconds_total': ['Processor time of the scheduler.', ({ schedulerSeconds }) => schedulerSeconds],
  'trilithon:step_seconds_total': ['Processor time of the steps.', ({ stepSeconds }) => stepSeconds],
}

/** `/metrics` under vLLM's names: what the engine counts, and what is seen of requests here. */
export class RequestMetrics implements GenerationObserver {
  readonly #registry = new Registry()
  readonly #info: EngineInfo
  readonly #view: StatsView
  readonly #labels: Readonly<Record<string, string>>
  readonly #firstToken: Histogram
  readonly #gap: Histogram
  readonly #duration: Histogram
  readonly #decode: Histogram
  readonly #queue: Histogram
  readonly #prefill: Histogram
  readonly #promptTokens: Histogram
  readonly #generatedTokens: Histogram
  readonly #iterations: CountedHistogram

  constructor({ model, info, stats }: { readonly model: string; readonly info: EngineInfo; readonly stats: StatsReader }) {
    this.#info = info
    this.#view = stats.createView()
    // A server is one engine, as far as its clients can see.
    this.#labels = { model_name: model, engine: '0' }
    const registers = [this.#registry]
    const labelNames = Object.keys(this.#labels)
    for (const [name, [help]] of Object.entries(gauges)) new Gauge({ name, help, labelNames, registers })
    for (const [name, [help]] of Object.entries(counters)) new Counter({ name, help, labelNames, registers })
    const histogram = (name: string, help: string, buckets: number[]) => new Histogram({ name, help, labelNames, registers, buckets })
    this.#firstToken = histogram('vllm:time_to_first_token_seconds', 'Seconds from request to first token.', firstTokenBuckets)
    this.#gap = histogram('vllm:inter_token_latency_seconds', 'Seconds between two tokens of a completion.', gapBuckets)
    this.#duration = histogram('vllm:e2e_request_latency_seconds', 'Seconds from request to end.', durationBuckets)
    this.#decode = histogram('vllm:request_decode_time_seconds', 'Seconds from first to last token.', durationBuckets)
    this.#queue = histogram('vllm:request_queue_time_seconds', 'Seconds from arrival to the first step of a request.', durationBuckets)
    this.#prefill = histogram(
      'vllm:request_prefill_time_seconds',
      'Seconds from the first step of a request to its first token.',
      durationBuckets,
    )
    this.#promptTokens = histogram('vllm:request_prompt_tokens', 'Tokens of prompts.', tokenBuckets)
    this.#generatedTokens = histogram('vllm:request_generation_tokens', 'Tokens of completions.', tokenBuckets)
    this.#iterations = new CountedHistogram({
      ...{ name: 'vllm:iteration_tokens_total', help: 'Tokens of a step: of prompts that were computed, and sampled.' },
      ...{ labels: this.#labels, bounds: iterationBounds, registry: this.#registry },
    })
    new Counter({
      ...{ name: 'vllm:request_success_total', help: 'Completions that have ended, by reason.', registers },
      labelNames: [...labelNames, 'finished_reason'],
    })
    const facts = {
      ...{ block_size: String(info.blockSize), num_gpu_blocks: String(info.blocks) },
      ...{ kv_cache_size_tokens: String(info.blocks * info.blockSize), cache_dtype: info.kvFormat },
    }
    new Gauge({
      ...{ name: 'vllm:cache_config_info', help: 'Facts of the KV cache, as labels.', registers },
      labelNames: [...labelNames, ...Object.keys(facts)],
    }).set({ ...this.#labels, ...facts }, 1)
    new Gauge({ name: 'trilithon:process_id', help: 'Id of the process.', registers }).set(process.pid)
    new Gauge({ name: 'process_resident_memory_bytes', help: 'Resident memory of the process.', registers })
    new Counter({ name: 'process_cpu_seconds_total', help: 'Processor time of the process.', registers })
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** The text that a scraper reads. */
  async text(): Promise<string> {
    const stats = this.#view.read()
    for (const [name, [, value]] of Object.entries(gauges)) this.#gauge(name).set(this.#labels, value(stats, this.#info))
    for (const [name, [, value]] of Object.entries(counters)) this.#count(name, this.#labels, value(stats))
    for (const [finished_reason, count] of Object.entries(stats.finished))
      this.#count('vllm:request_success_total', { ...this.#labels, finished_reason }, count)
    this.#iterations.set(stats.iterations.counts, stats.iterations.tokens)
    const { user, system } = process.cpuUsage()
    this.#gauge('process_resident_memory_bytes').set(process.memoryUsage.rss())
    this.#count('process_cpu_seconds_total', {}, (user + system) / 1e6)
    return this.#registry.metrics()
  }

  tokens({ times }: Generation, { tokenIds }: Completion, count: number, gapMs: number | null): void {
    if (tokenIds.length === count)
      this.#firstToken.observe(this.#labels, ((times.firstTokenMs ?? times.startedMs) - times.startedMs) / 1000)
    if (gapMs === null) return
    for (let token = 0; token < count; token++) this.#gap.observe(this.#labels, gapMs / 1000 / count)
  }

  ended({ request, times }: Generation, { index, tokenIds, end }: Completion): void {
    if (end?.reason === 'abort' || end?.reason === 'error') return
    const last = times.lastTokenMs ?? times.startedMs
    this.#duration.observe(this.#labels, (last - times.startedMs) / 1000)
    this.#decode.observe(this.#labels, (last - (times.firstTokenMs ?? last)) / 1000)
    // The prompt is one, however many completions there are.
    if (index === 0) {
      this.#queue.observe(this.#labels, times.queueSeconds)
      this.#prefill.observe(this.#labels, times.prefillSeconds)
    }
    this.#promptTokens.observe(this.#labels, request.promptIds.length)
    this.#generatedTokens.observe(this.#labels, tokenIds.length)
  }

  #gauge(name: string): Gauge {
    return this.#registry.getSingleMetric(name) as Gauge
  }

  /** The engine has the count; here it is only told. */
  #count(name: string, labels: Readonly<Record<string, string>>, value: number): void {
    const counter = this.#registry.getSingleMetric(name) as Counter
    counter.remove(labels)
    counter.inc(labels, value)
  }
}
