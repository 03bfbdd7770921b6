import { type ErrorCode, errorCodes, type KVStore, type Logger, TrilithonError } from '@trilithon/core'
import { BlockCourier } from './block-courier.ts'
import { checkRequest } from './check-request.ts'
import type {
  Engine,
  EngineEvent,
  EngineInfo,
  EngineRequest,
  EngineStats,
  ImportedPrompt,
  PauseMode,
  TokenCandidate,
  WeightExchange,
} from './engine.ts'
import { type CoreReport, type EngineCall, type FromCore, type SharedMemory, type ToCore, tokenWords } from './engine-messages.ts'
import { SharedStats } from './shared-stats.ts'

/** The way to the thread of the model. */
export interface ProxyPort {
  post(message: ToCore): void
  /** `onEnd` is called once, when the thread has ended: with what it threw, if anything. */
  listen(onMessage: (message: FromCore) => void, onEnd: (error: unknown) => void): void
  /** Ends a step that is under way. */
  stop(): void
  close(): Promise<void>
}

interface Open {
  readonly id: string
  readonly onEvent: (event: EngineEvent) => void
  readonly imported: ImportedPrompt['blocks']
  hasPrompt: boolean
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const noCandidates: readonly TokenCandidate[] = []
/** Of a prompt that was never computed. */
const nothingKnown = { cachedTokens: 0, storedTokens: 0, queueSeconds: 0, prefillSeconds: 0, promptLogprobs: null } as const
const noBlocks: ImportedPrompt['blocks'] = []
/** Milliseconds that the thread has to end in order. */
const disposeMs = 1000

/** The engine as the main thread sees it: hands requests to the thread of the model and events to whoever asked. */
export class EngineProxy implements Engine {
  readonly info: EngineInfo
  readonly ended: Promise<void>
  readonly #port: ProxyPort
  readonly #stats: SharedStats
  readonly #store: KVStore | null
  readonly #courier: BlockCourier | null
  readonly #open = new Map<number, Open>()
  readonly #handles = new Map<string, number>()
  readonly #calls = new Map<number, Pending>()
  #handle = 0
  #call = 0
  #failure: TrilithonError | null = null
  #isDisposed = false
  #settleEnded: Pending

  private constructor(port: ProxyPort, info: EngineInfo, shared: SharedMemory, store: KVStore | null, log: Logger) {
    this.info = info
    this.#port = port
    this.#stats = new SharedStats(shared.stats)
    this.#store = store
    let settle: Pending | undefined
    this.ended = new Promise<void>((resolve, reject) => {
      settle = { resolve: () => resolve(), reject }
    })
    this.#settleEnded = settle as unknown as Pending
    // Whoever looks at it gets the rejection; nobody has to.
    this.ended.catch(() => undefined)
    this.#courier =
      shared.slots === null
        ? null
        : new BlockCourier({
            store,
            layout: shared.slots,
            profile: info.profile,
            format: info.kvFormat,
            log,
            onWritten: (slots) => this.#post({ kind: 'slots-written', slots }),
            onFetched: (fetched) => this.#post({ kind: 'fetched', fetched }),
          })
  }

  static start(port: ProxyPort, { store, log }: { readonly store: KVStore | null; readonly log: Logger }): Promise<EngineProxy> {
    return new Promise((resolve, reject) => {
      let engine: EngineProxy | undefined
      let failure: TrilithonError | undefined
      port.listen(
        (message) => {
          if (message.kind === 'started') {
            engine = new EngineProxy(port, message.info, message.shared, store, log)
            resolve(engine)
          } else if (message.kind === 'failed' && engine === undefined) failure = reviveError(message.error)
          else if (engine !== undefined) engine.#take(message)
        },
        (error) => {
          if (engine === undefined) reject(failure ?? engineFailed('the thread of the engine ended before it could serve', error))
          else engine.#end(error)
        },
      )
    })
  }

  submit(request: EngineRequest, onEvent: (event: EngineEvent) => void): void {
    if (this.#failure !== null) throw this.#failure
    if (this.#isDisposed) throw engineFailed('the engine was stopped', undefined)
    checkRequest(request, this.info)
    const { imported, ...rest } = request
    const handle = this.#handle
    if (this.#handles.has(request.id))
      throw new TrilithonError('REQUEST_INVALID', `a request with the id ${request.id} is under way`, {
        path: 'id',
        hint: 'Give every request an id of its own.',
      })
    // Handles come round after four thousand million requests.
    this.#handle = (handle + 1) >>> 0
    this.#open.set(handle, { id: request.id, onEvent, imported: imported?.blocks ?? noBlocks, hasPrompt: false })
    this.#handles.set(request.id, handle)
    const first = imported === null ? null : { firstToken: imported.firstToken }
    this.#post({ kind: 'submit', request: { ...rest, handle, imported: first } })
  }

  abort(ids: readonly string[]): void {
    const handles = ids.map((id) => this.#handles.get(id)).filter((handle) => handle !== undefined)
    if (handles.length > 0) this.#post({ kind: 'abort', handles })
  }

  async pause(mode: PauseMode): Promise<void> {
    await this.#ask({ name: 'pause', argument: { mode } })
  }

  async resume(): Promise<void> {
    await this.#ask({ name: 'resume', argument: null })
  }

  async prepareWeights({ version, path, stamp = '' }: Parameters<Engine['prepareWeights']>[0]): Promise<void> {
    await this.#ask({ name: 'prepare-weights', argument: { version, path, stamp } })
  }

  async flipWeights(version: number): Promise<void> {
    await this.#ask({ name: 'flip-weights', argument: { version } })
  }

  async exchangeWeights(version: number): Promise<WeightExchange> {
    return (await this.#ask({ name: 'exchange-weights', argument: { version } })) as WeightExchange
  }

  async finishWeights(version: number): Promise<void> {
    await this.#ask({ name: 'finish-weights', argument: { version } })
  }

  async weightChecksums(): Promise<Readonly<Record<string, string>>> {
    return (await this.#ask({ name: 'weight-checksums', argument: null })) as Record<string, string>
  }

  async resetPrefixCache({ isExternal }: { readonly isExternal: boolean }): Promise<void> {
    await this.#ask({ name: 'reset-prefix-cache', argument: null })
    if (isExternal) await this.#store?.invalidate({})
  }

  stats(): EngineStats {
    return this.#stats.read()
  }

  async dispose(): Promise<void> {
    if (this.#isDisposed) return
    this.#isDisposed = true
    const answered = this.#failure === null ? this.#ask({ name: 'dispose', argument: null }).catch(() => undefined) : Promise.resolve()
    this.#port.stop()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, disposeMs)
    })
    await Promise.race([answered, late])
    clearTimeout(timer)
    await this.#port.close()
    this.#end(undefined)
  }

  #post(message: ToCore): void {
    if (this.#failure === null) this.#port.post(message)
  }

  #ask(call: EngineCall): Promise<unknown> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    const number = this.#call++
    return new Promise((resolve, reject) => {
      this.#calls.set(number, { resolve, reject })
      this.#post({ kind: 'call', call, number })
    })
  }

  #take(message: FromCore): void {
    if (message.kind === 'report') this.#deliver(message.report)
    else if (message.kind === 'failed') this.#end(reviveError(message.error))
    else if (message.kind !== 'started') {
      const pending = this.#calls.get(message.number)
      this.#calls.delete(message.number)
      if (message.kind === 'answer') pending?.resolve(message.value)
      else pending?.reject(reviveError(message.error))
    }
  }

  #deliver({ tokens, candidates, prompts, ends, lookups, evictions, slotsRead }: CoreReport): void {
    for (const { handle, ...prompt } of prompts) {
      const open = this.#open.get(handle)
      if (open === undefined) continue
      open.hasPrompt = true
      tell(open, { kind: 'prompt', id: open.id, ...prompt })
    }
    const floats = new Float32Array(tokens.buffer, tokens.byteOffset, tokens.length)
    let listed = 0
    for (let index = 0, at = 0; at < tokens.length; index++, at += tokenWords) {
      const beside = candidates[listed]?.index === index ? candidates[listed++]?.list : undefined
      const open = this.#open.get(tokens[at] as number)
      if (open === undefined) continue
      tell(open, {
        kind: 'tokens',
        id: open.id,
        tokenIds: tokens.subarray(at + 1, at + 2),
        logprobs: floats.subarray(at + 2, at + 3),
        versions: tokens.subarray(at + 3, at + 4),
        contextVersionsMin: tokens.subarray(at + 4, at + 5),
        candidates: [beside ?? noCandidates],
      })
    }
    for (const { handle, ...end } of ends) {
      const open = this.#open.get(handle)
      if (open === undefined) continue
      this.#open.delete(handle)
      this.#handles.delete(open.id)
      tell(open, { kind: 'end', id: open.id, ...end })
    }
    // Blocks that left come before those that are asked for: they may be the same.
    if (evictions.length > 0) void this.#courier?.put(evictions)
    if (slotsRead.length > 0) this.#courier?.slotsRead(slotsRead)
    for (const lookup of lookups) this.#courier?.look(lookup, this.#open.get(lookup.handle)?.imported ?? noBlocks)
  }

  /** The thread is gone, or is about to go: everything that waits for it is told. */
  #end(error: unknown): void {
    if (this.#failure !== null) return
    // A step that is stopped by force fails: it was asked to.
    const isExpected = this.#isDisposed
    const failure = isExpected ? engineFailed('the engine was stopped', undefined) : engineFailed('the thread of the engine ended', error)
    this.#failure = failure
    const open = [...this.#open.values()]
    this.#open.clear()
    this.#handles.clear()
    const cause = { code: failure.code, message: failure.message }
    for (const one of open) {
      const { id } = one
      if (!one.hasPrompt) tell(one, { kind: 'prompt', id, ...nothingKnown })
      tell(one, { kind: 'end', id, reason: 'error', stopId: null, routedExperts: null, indexChoices: null, error: cause })
    }
    for (const { reject } of this.#calls.values()) reject(failure)
    this.#calls.clear()
    if (isExpected) this.#settleEnded.resolve(undefined)
    else this.#settleEnded.reject(failure)
  }
}

/** A listener that throws is its own fault and takes nothing from the others. */
function tell({ onEvent }: Open, event: EngineEvent): void {
  try {
    onEvent(event)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

function engineFailed(message: string, cause: unknown): TrilithonError {
  const reason = cause === undefined ? '' : `: ${cause instanceof Error ? cause.message : String(cause)}`
  return new TrilithonError('ENGINE_FAILED', `${message}${reason}`, { hint: 'Look into the log of the inference process.', cause })
}

interface PlainError {
  readonly code?: string
  readonly message?: string
  readonly path?: string
  readonly hint?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** An error of the other thread, from its JSON. */
function reviveError(plain: unknown): TrilithonError {
  const { code = '', message = '', path, hint, details } = plain as PlainError
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'INVARIANT_BROKEN'
  return new TrilithonError(known, message, { path, hint, details })
}
