import { TrilithonError } from '@trilithon/core'
import { countParameters, kvElementsPerToken, loadModel, nodeFiles, readModelConfig } from '@trilithon/models'
import { openWeights } from '@trilithon/transport'
import type { EngineInfo } from './engine.ts'
import { EngineCore } from './engine-core.ts'
import type { EngineCall, FromCore, ToCore } from './engine-messages.ts'
import { countSlots, type HostOptions, readEndIds, sizeCache } from './engine-options.ts'
import { SharedStats } from './shared-stats.ts'

/** What both ends of a pair of message ports have. */
export interface HostPort {
  postMessage(message: FromCore, transfer: readonly ArrayBuffer[]): void
}

/**
 * The engine in the thread of its model: takes messages, and computes one step after another while there is something to do. Messages are taken between
 * two steps.
 */
export class EngineHost {
  readonly #core: EngineCore
  readonly #port: HostPort
  readonly #onEnd: () => void
  #isScheduled = false
  #isDisposed = false

  /** Reads the model. Throws what reading it throws. */
  constructor(options: HostOptions, port: HostPort, onEnd: () => void) {
    this.#port = port
    this.#onEnd = onEnd
    const { modelFolder, version, profile, blockSize, maxRunning, prefillTokens, prefixCaching, routedExperts, hasStore } = options
    // What can be known before the weights are read is checked before.
    const { blocks, maxModelLen } = sizeCache(readModelConfig(modelFolder).config, options)
    const endIds = readEndIds(modelFolder, nodeFiles)
    const { model } = loadModel(modelFolder)
    const slotBytes = kvElementsPerToken(model.config) * blockSize * 4
    const { leaving, coming } = countSlots(options, slotBytes)
    const slots = { buffer: new SharedArrayBuffer((leaving + coming) * slotBytes), slotBytes, leaving, coming }
    const stats = new SharedArrayBuffer(SharedStats.bytes)
    new SharedStats(stats).begin()
    this.#core = new EngineCore({
      model,
      version,
      path: modelFolder,
      profile,
      blockSize,
      blocks,
      maxModelLen,
      maxRunning,
      prefillTokens,
      prefixCaching,
      routedExperts,
      endIds,
      slots,
      hasStore,
      stats,
      files: nodeFiles,
      openWeights,
    })
    const info: EngineInfo = {
      vocabSize: model.config.vocabSize,
      maxModelLen,
      blockSize,
      blocks,
      profile,
      kvFormat: this.#core.format,
      endIds,
      routedLayout: model.routedLayout,
      parameters: countParameters(model.specs),
    }
    port.postMessage({ kind: 'started', info, shared: { stats, slots } }, [])
  }

  take(message: ToCore): void {
    if (this.#isDisposed) return
    try {
      switch (message.kind) {
        case 'submit':
          this.#core.submit(message.request)
          break
        case 'abort':
          for (const handle of message.handles) this.#core.abort(handle)
          break
        case 'fetched':
          this.#core.takeFetched(message.fetched)
          break
        case 'slots-written':
          this.#core.slotsWritten(message.slots)
          break
        case 'call':
          this.#answer(message.call, message.number)
      }
      this.#sendReport()
      this.#schedule()
    } catch (error) {
      this.#fail(error)
    }
  }

  #answer(call: EngineCall, number: number): void {
    const answer = (value?: unknown) => {
      // What happened before the answer is told before it.
      this.#sendReport()
      this.#port.postMessage({ kind: 'answer', number, value }, [])
    }
    const refuse = (error: unknown) => this.#port.postMessage({ kind: 'refusal', number, error: plainError(error) }, [])
    try {
      const { weights } = this.#core
      if (call.name === 'pause') this.#core.pause(call.argument.mode, answer)
      else if (call.name === 'exchange-weights') this.#core.exchange(call.argument.version, answer)
      else if (call.name === 'prepare-weights') weights.prepare(call.argument, (error) => (error === null ? answer() : refuse(error)))
      else answer(this.#do(call))
    } catch (error) {
      refuse(error)
    }
  }

  /** A call that is done when it returns. */
  #do(call: Exclude<EngineCall, { readonly name: 'pause' | 'exchange-weights' | 'prepare-weights' }>): unknown {
    switch (call.name) {
      case 'resume':
        return this.#core.resume()
      case 'flip-weights':
        return this.#core.flip(call.argument.version)
      case 'finish-weights':
        return this.#core.weights.finish(call.argument.version)
      case 'weight-checksums':
        return this.#core.weights.checksums()
      case 'reset-prefix-cache':
        return this.#core.resetPrefixCache()
      case 'dispose':
        return this.#end()
    }
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isDisposed) return
    this.#isScheduled = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    this.#isScheduled = false
    if (this.#isDisposed) return
    try {
      const isBusy = this.#core.step()
      this.#sendReport()
      if (isBusy) this.#schedule()
    } catch (error) {
      this.#fail(error)
    }
  }

  #sendReport(): void {
    const report = this.#core.take()
    if (report !== null) this.#port.postMessage({ kind: 'report', report }, [report.tokens.buffer as ArrayBuffer])
  }

  /** A fault that is not that of one request: the engine is of no use any more, and says so. */
  #fail(error: unknown): void {
    this.#port.postMessage({ kind: 'failed', error: plainError(error) }, [])
    this.#end()
  }

  #end(): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#core.dispose()
    this.#onEnd()
  }
}

/** An error as it crosses threads. */
export function plainError(error: unknown): unknown {
  const known = TrilithonError.is(error)
    ? error
    : new TrilithonError('INVARIANT_BROKEN', error instanceof Error ? (error.stack ?? error.message) : String(error), {
        hint: 'This is a fault of Trilithon; report it with the command that led here.',
      })
  return JSON.parse(JSON.stringify(known))
}
