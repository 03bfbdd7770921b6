export interface AimdOptions {
  readonly initial: number
  readonly min: number
  readonly max: number
  /** What is added at once. */
  readonly step: number
}

/** Before the first cut a limit grows by this factor, as TCP's slow start does; from then on by its step. */
const firstGrowth = 1.5

/** A limit that grows by addition and shrinks by multiplication (Chiu and Jain 1989), and only while it is what holds back what it limits. */
export class AimdLimit {
  readonly #options: AimdOptions
  #value: number
  #hasCut = false
  #most = 0
  #isBinding = false

  constructor(options: AimdOptions) {
    this.#options = options
    this.#value = Math.min(options.max, Math.max(options.min, options.initial))
  }

  get value(): number {
    return Math.floor(this.#value)
  }

  /** Whether `count` more fit beside what is in flight; remembers both answers. */
  admits(inFlight: number, count: number): boolean {
    this.#most = Math.max(this.#most, inFlight)
    if (inFlight === 0 || inFlight + count <= this.value) return true
    this.#isBinding = true
    return false
  }

  /** False where it held nothing back, or is at its upper bound. */
  grow(): boolean {
    const { max, step } = this.#options
    if (!this.#isBinding || this.#value >= max) return false
    this.#set(this.#hasCut ? this.#value + step : this.#value * firstGrowth)
    return true
  }

  /** A share of the limit, or of what was in flight where that is less. False at its lower bound. */
  cut(factor: number): boolean {
    const { min } = this.#options
    if (this.#value <= min) return false
    const from = this.#most === 0 ? this.#value : Math.min(this.#value, this.#most)
    this.#hasCut = true
    this.#set(from * factor)
    return true
  }

  #set(value: number): void {
    this.#value = Math.min(this.#options.max, Math.max(this.#options.min, value))
    this.#most = 0
    this.#isBinding = false
  }
}
