import { type CoreReport, tokenWords } from './engine-messages.ts'

type Writable<T> = { -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Item[] : T[Key] }

/** Gathers what happens in a step, for one message. */
export class ReportBuilder {
  #words = new Uint32Array(tokenWords * 64)
  #floats = new Float32Array(this.#words.buffer)
  #count = 0
  #isEmpty = true
  #lists = emptyLists()

  addToken(handle: number, token: number, logprob: number, version: number, contextVersionMin: number): void {
    const at = this.#count * tokenWords
    if (at === this.#words.length) {
      const larger = new Uint32Array(this.#words.length * 2)
      larger.set(this.#words)
      this.#words = larger
      this.#floats = new Float32Array(larger.buffer)
    }
    this.#words[at] = handle
    this.#words[at + 1] = token
    this.#floats[at + 2] = logprob
    this.#words[at + 3] = version
    this.#words[at + 4] = contextVersionMin
    this.#count++
    this.#isEmpty = false
  }

  /** Beside the token that was added last. */
  addCandidates(list: CoreReport['candidates'][number]['list']): void {
    this.#lists.candidates.push({ index: this.#count - 1, list })
  }

  add<Name extends 'prompts' | 'ends' | 'lookups' | 'evictions' | 'slotsRead'>(name: Name, item: CoreReport[Name][number]): void {
    const list = this.#lists[name] as CoreReport[Name][number][]
    list.push(item)
    this.#isEmpty = false
  }

  /** What was added since the last call; null where nothing was. */
  take(): CoreReport | null {
    if (this.#isEmpty) return null
    const report = { tokens: this.#words.slice(0, this.#count * tokenWords), ...this.#lists }
    this.#count = 0
    this.#isEmpty = true
    this.#lists = emptyLists()
    return report
  }
}

const emptyLists = (): Writable<Omit<CoreReport, 'tokens'>> => ({
  candidates: [],
  prompts: [],
  ends: [],
  lookups: [],
  evictions: [],
  slotsRead: [],
})
