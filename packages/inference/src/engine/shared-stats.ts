import type { EngineEnd, EngineStats } from './engine.ts'

const numbers = [
  'version',
  'isPaused',
  'running',
  'waiting',
  'usedBlocks',
  'cachedBlocks',
  'steps',
  'promptTokens',
  'generatedTokens',
  'prefixQueries',
  'prefixHits',
  'storeQueries',
  'storeHits',
  'preemptions',
  'schedulerSeconds',
  'stepSeconds',
  'stop',
  'length',
  'abort',
  'error',
  'busySince',
] as const

export type StatName = (typeof numbers)[number]

/** Upper bounds of the counts of steps by their tokens, as in vLLM; more than the last are counted behind it. */
export const iterationBounds = [1, 8, ...Array.from({ length: 11 }, (_, index) => 2 ** (index + 4))]
const bucketCount = iterationBounds.length + 1

const placeOf = Object.fromEntries(numbers.map((name, index) => [name, index])) as Readonly<Record<StatName, number>>
const reasons = ['stop', 'length', 'abort', 'error'] as const satisfies readonly EngineEnd['reason'][]
const none = 0x7fffffff

/** Figures of an engine in memory that both threads see: written after every step, read at any time. */
export class SharedStats {
  static readonly bytes = (numbers.length + bucketCount + 1) * 8 + 8
  readonly #values: Float64Array
  /** Steps by their tokens, and the tokens of all of them. */
  readonly #iterations: Float64Array
  readonly #oldest: Int32Array

  constructor(buffer: SharedArrayBuffer) {
    this.#values = new Float64Array(buffer, 0, numbers.length)
    this.#iterations = new Float64Array(buffer, numbers.length * 8, bucketCount + 1)
    this.#oldest = new Int32Array(buffer, (numbers.length + bucketCount + 1) * 8, 1)
  }

  /** For whoever makes the memory. */
  begin(): void {
    this.#oldest[0] = none
  }

  get(name: StatName): number {
    return this.#values[placeOf[name]] as number
  }

  set(name: StatName, value: number): void {
    this.#values[placeOf[name]] = value
  }

  add(name: StatName, value: number): void {
    const place = placeOf[name]
    this.#values[place] = (this.#values[place] as number) + value
  }

  /** Counts a step by the tokens of prompts that it computed and those that it sampled. */
  noteIteration(tokens: number): void {
    let bucket = 0
    while (bucket < iterationBounds.length && tokens > (iterationBounds[bucket] as number)) bucket++
    this.#iterations[bucket] = (this.#iterations[bucket] as number) + 1
    this.#iterations[bucketCount] = (this.#iterations[bucketCount] as number) + tokens
  }

  /** Notes the oldest weights behind a token. */
  noteServed(version: number): void {
    // The reader takes the value away between our two calls at worst: then it sees the version with its next look.
    if (version < Atomics.load(this.#oldest, 0)) Atomics.store(this.#oldest, 0, version)
  }

  read(): EngineStats {
    const oldest = Atomics.exchange(this.#oldest, 0, none)
    const busySince = this.get('busySince')
    return {
      version: this.get('version'),
      isPaused: this.get('isPaused') !== 0,
      running: this.get('running'),
      waiting: this.get('waiting'),
      usedBlocks: this.get('usedBlocks'),
      cachedBlocks: this.get('cachedBlocks'),
      steps: this.get('steps'),
      promptTokens: this.get('promptTokens'),
      generatedTokens: this.get('generatedTokens'),
      prefixQueries: this.get('prefixQueries'),
      prefixHits: this.get('prefixHits'),
      storeQueries: this.get('storeQueries'),
      storeHits: this.get('storeHits'),
      preemptions: this.get('preemptions'),
      finished: Object.fromEntries(reasons.map((reason) => [reason, this.get(reason)])) as EngineStats['finished'],
      schedulerSeconds: this.get('schedulerSeconds'),
      stepSeconds: this.get('stepSeconds'),
      idleMs: busySince === 0 ? 0 : Math.max(0, Date.now() - busySince),
      iterations: { counts: [...this.#iterations.subarray(0, bucketCount)], tokens: this.#iterations[bucketCount] as number },
      oldestVersionServed: oldest === none ? null : oldest,
    }
  }
}
