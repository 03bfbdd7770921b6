import { type Logger, TrilithonError } from '@trilithon/core'
import { EpisodeFailure } from '../episode/episode-failure.ts'
import { FrameClient } from '../protocol/frame-client.ts'
import { type DescriptionMessage, type FinalMessage, inputsOf, type PongMessage, type RunMessage } from '../protocol/messages.ts'
import type { TurnMessage } from '../protocol/turn-message.ts'
import type { RendererDescription } from '../turn-renderer.ts'
import { askDescription } from './ask-description.ts'
import type { Backend, CallOptions } from './backend.ts'

export interface RemoteServerOptions {
  readonly address: string
  readonly startTimeoutS: number
  readonly renderer: RendererDescription
  readonly log: Logger
}

const pingIntervalMs = 1000
/** Probes without an answer after which the server counts as away. */
const mostMissed = 5
/** A server ends an episode at its deadline by itself, if need be by killing a worker. */
const graceMs = 6000

/** So that a server hears of what was cancelled last. */
const lingerMs = 500

interface Call {
  readonly episodes: number
  send(): void
  cancel(): void
  lost(reason: string): void
}

/**
 * An environment server that runs elsewhere. It may go away and come back: what it was asked is asked again when it answers probes again, or when another
 * process answers under its address, while retries last.
 */
export class RemoteServer implements Backend {
  description: DescriptionMessage = { name: '', scoring: 'rollout', tasks: null, eval_tasks: null }
  readonly counters = { workers: 0, deaths: 0, rerun: 0 }
  readonly #frames: FrameClient
  readonly #address: string
  readonly #log: Logger
  readonly #calls = new Set<Call>()
  #isDisposed = false
  #pings: NodeJS.Timeout | undefined
  #server: string | undefined
  #isAway = false

  private constructor({ address, log }: RemoteServerOptions) {
    this.#address = address
    this.#log = log
    this.#frames = new FrameClient(address, log, lingerMs)
  }

  /** Resolves when the server has said what it serves. Throws `TASK_FAILED` where it does not answer in time, `ENVIRONMENT_INVALID`. */
  static async connect(options: RemoteServerOptions): Promise<RemoteServer> {
    const server = new RemoteServer(options)
    try {
      server.description = await server.#describe(options.startTimeoutS, options.renderer)
      server.#watch()
      return server
    } catch (error) {
      await server.dispose()
      throw error
    }
  }

  call(message: RunMessage, { signal, onTurn }: CallOptions): Promise<FinalMessage> {
    const deadline = message.deadline_ms === null ? null : performance.now() + message.deadline_ms
    return new Promise((resolve, reject) => {
      let attempt = message.first_attempt
      let id = ''
      let timer: NodeJS.Timeout | undefined
      const finish = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', cancel)
        this.#calls.delete(call)
        this.#frames.forget(id)
      }
      const fail = (type: 'Cancelled' | 'DeadlineExceeded' | 'WorkerDied', reason: string) => {
        if (id !== '') this.#frames.cancel(id)
        finish()
        reject(new EpisodeFailure(type, reason))
      }
      const cancel = () => fail('Cancelled', this.#isDisposed ? 'the pool was disposed of' : 'the episode was cancelled')
      const call: Call = {
        episodes: inputsOf(message).length,
        cancel,
        send: () => {
          const left = deadline === null ? null : Math.max(0, deadline - performance.now())
          id = this.#frames.request({ ...message, first_attempt: attempt, deadline_ms: left }, (frame) => {
            if ((frame as { event?: unknown }).event === 'turn') {
              const turn = frame as TurnMessage
              attempt = Math.max(attempt, turn.attempt)
              return onTurn(turn)
            }
            // From here on the server alone knows when its time is over.
            if ((frame as { event?: unknown }).event === 'again') return clearTimeout(timer)
            finish()
            resolve(frame as FinalMessage)
          })
        },
        lost: (reason) => {
          this.#frames.forget(id)
          attempt++
          if (attempt > message.max_retries) return fail('WorkerDied', `${this.#address}: ${reason}, and no retry is left`)
          this.counters.rerun += call.episodes
          call.send()
        },
      }
      this.#calls.add(call)
      signal.addEventListener('abort', cancel, { once: true })
      if (signal.aborted || this.#isDisposed) return cancel()
      if (deadline !== null) {
        const late = () => fail('DeadlineExceeded', `${this.#address} did not end the episode at its deadline`)
        timer = setTimeout(late, Math.min(2 ** 31 - 1, Math.max(0, deadline - performance.now()) + graceMs))
      }
      call.send()
    })
  }

  async dispose(): Promise<void> {
    clearInterval(this.#pings)
    this.#isDisposed = true
    for (const call of [...this.#calls]) call.cancel()
    await this.#frames.close()
  }

  async #describe(timeoutS: number, renderer: RendererDescription): Promise<DescriptionMessage> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const error = new TrilithonError('TASK_FAILED', `no environment server answers at ${this.#address} after ${timeoutS} s`, {
        path: 'env.address',
        hint: 'Start it with trilithon env-server, or remove the address to start workers here.',
      })
      timer = setTimeout(() => reject(error), timeoutS * 1000)
    })
    try {
      return await Promise.race([askDescription(this.#frames, renderer), late])
    } finally {
      clearTimeout(timer)
    }
  }

  #watch(): void {
    let missed = 0
    let forgetPing: (() => void) | undefined
    this.#pings = setInterval(() => {
      if (forgetPing !== undefined) {
        missed++
        forgetPing()
      }
      if (missed === mostMissed) {
        this.#isAway = true
        this.counters.deaths++
        this.#log.warn('an environment server does not answer', { address: this.#address })
      }
      forgetPing = this.#frames.ping((pong) => {
        forgetPing = undefined
        missed = 0
        this.#heard((pong as PongMessage).server)
      })
    }, pingIntervalMs)
    this.#pings.unref()
  }

  /** A server that was away, or another one under the same address, may have lost what it was asked. */
  #heard(server: string): void {
    const isAnother = this.#server !== undefined && this.#server !== server
    this.#server = server
    if (!this.#isAway && !isAnother) return
    this.#log.info('an environment server answers again', { address: this.#address, isAnother, calls: this.#calls.size })
    this.#isAway = false
    for (const call of [...this.#calls]) call.lost(isAnother ? 'it was started anew' : 'it was away')
  }
}
