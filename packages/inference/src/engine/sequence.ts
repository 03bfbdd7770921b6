import type { OpaquePayload } from '@trilithon/core'
import type { BlockName } from './block-manager.ts'
import type { TokenCandidate } from './engine.ts'
import type { CoreRequest } from './engine-messages.ts'

/**
 * A request as the scheduler sees it: its tokens so far, and the pages that hold their keys.
 *
 * `known` tokens are the prompt and what was sampled; of these `computed` have their keys in the pages. Preempted, it has none computed and loses nothing.
 */
export class Sequence {
  readonly request: CoreRequest
  /** Order of arrival. */
  readonly arrival: number
  readonly promptLength: number
  /** Most tokens that it will have. */
  readonly maxLength: number
  /** Whether prefixes that are known may stand for their computation. */
  readonly readsCache: boolean
  tokens: Int32Array
  known: number
  computed = 0
  pages: Int32Array
  pageCount = 0
  /** Of the full blocks, as far as they were hashed. */
  readonly names: BlockName[] = []
  /** Blocks that were found or registered already. */
  registered = 0
  /** Blocks registered by the step that runs: forgotten when it fails. */
  registeredBefore = 0
  /** Oldest weights that computed any of its keys. */
  contextMin = Number.POSITIVE_INFINITY
  state: 'waiting' | 'asking' | 'running' | 'ended' = 'waiting'
  /** Tokens whose keys were found at the last admission, and those of them that came from the store. */
  cachedTokens = 0
  storedTokens = 0
  /** Blocks that the store was asked for: all before this one. */
  askedBlocks = 0
  /** Blocks that the store gave: [from, to). */
  storedFrom = 0
  storedTo = 0
  hasPromptEvent = false
  /** Milliseconds of `performance.now`: when it arrived, and when it was first computed; 0 before. */
  readonly arrivedMs = performance.now()
  begunMs = 0
  /** By token of the prompt, where they were asked for. */
  promptLists: (readonly TokenCandidate[])[] | null = null
  /** Rows of chosen keys, where they were asked for: [rows, layers, keys] one after another. */
  choices: Int32Array[] = []
  /** Rows of experts that it had when it was preempted, from its first token on; who ends it before it is computed again gets these. */
  keptExperts: OpaquePayload | null = null
  /** Counts resets of the cache: content computed before one is not made known after it. */
  readonly epoch: number
  /** Row of the batch in which its last token stands. */
  row = 0

  constructor(request: CoreRequest, arrival: number, epoch: number, maxModelLen: number, blockSize: number) {
    const { promptIds, imported, sampling } = request
    this.request = request
    this.arrival = arrival
    this.epoch = epoch
    this.promptLength = promptIds.length
    this.maxLength = Math.min(promptIds.length + sampling.maxTokens, maxModelLen)
    this.readsCache = request.promptLogprobs === null && !request.reportsIndexChoices
    const first = imported?.firstToken ?? null
    this.known = promptIds.length + (first === null ? 0 : 1)
    this.tokens = new Int32Array(Math.min(this.maxLength, this.known + 64))
    this.tokens.set(promptIds)
    if (first !== null) this.tokens[promptIds.length] = first.id
    this.pages = new Int32Array(Math.ceil(this.tokens.length / blockSize))
  }

  /** Tokens whose keys are to be computed. */
  get pending(): number {
    return this.known - this.computed
  }

  get generated(): number {
    return this.known - this.promptLength
  }

  push(token: number): void {
    if (this.known === this.tokens.length) this.tokens = grown(this.tokens)
    this.tokens[this.known++] = token
  }

  addPage(page: number): void {
    if (this.pageCount === this.pages.length) this.pages = grown(this.pages)
    this.pages[this.pageCount++] = page
  }

  /** Served before `other`. */
  isBefore(other: Sequence): boolean {
    const { priority } = this.request
    return priority === other.request.priority ? this.arrival < other.arrival : priority < other.request.priority
  }
}

function grown(array: Int32Array): Int32Array {
  const larger = new Int32Array(array.length * 2)
  larger.set(array)
  return larger
}

/** A list in the order of service. */
export function insertInOrder(list: Sequence[], sequence: Sequence): void {
  let place = list.length
  while (place > 0 && sequence.isBefore(list[place - 1] as Sequence)) place--
  if (place === list.length) list.push(sequence)
  else list.splice(place, 0, sequence)
}
