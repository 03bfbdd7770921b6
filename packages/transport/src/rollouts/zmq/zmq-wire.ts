import { type Logger, silentLogger, TrilithonError } from '@trilithon/core'
import type { ReceiverState } from './receive-window.ts'

/** Where the two sides meet, as `rollout_transport` says. */
export interface ZmqEndpoint {
  readonly host: string
  readonly port: number
  /** Batches that may wait for the trainer before the orchestrator is held, and as many that it may be ahead of the trainer on its side. */
  readonly hwm: number
}

export interface ZmqOptions extends ZmqEndpoint {
  /** The first batch that is to be trained. */
  readonly firstStep: number
  readonly log?: Logger
}

/** Address of a port. */
export const addressOf = (host: string, port: number): string => `tcp://${host.includes(':') ? `[${host}]` : host}:${port}`

/** For every socket. A peer whose machine has gone is noticed; the time allows for one large batch that is on its way. */
export const socketOptions = ({ host }: ZmqEndpoint) => ({
  linger: 0,
  ipv6: host.includes(':'),
  heartbeatInterval: 5000,
  heartbeatTimeout: 60_000,
})

export const loggerOf = ({ log }: ZmqOptions): Logger => log ?? silentLogger

/** The second frame of what a receiver says; the first is the name of the run's folder. */
export function encodeState({ session, next, until }: ReceiverState): string {
  return JSON.stringify({ session, next, until })
}

/** Undefined for what is no state: another program listens there, and talks. */
export function decodeState(frame: Uint8Array | undefined): ReceiverState | undefined {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(frame))
  } catch {
    return undefined
  }
  const { session, next, until } = (value ?? {}) as Partial<ReceiverState>
  const isCount = (number: unknown): number is number => Number.isSafeInteger(number) && (number as number) >= 0
  return typeof session === 'string' && isCount(next) && isCount(until) ? { session, next, until } : undefined
}

/** The error for an address that cannot be listened on. */
export function unusableAddress(address: string, port: number, cause: unknown): TrilithonError {
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return new TrilithonError('PORT_IN_USE', `port ${port} cannot be used for batches: another program listens at ${address}`, {
      path: 'rollout_transport.port',
      hint: 'Choose another rollout_transport.port, the same for trainer and orchestrator, or end the program that has it.',
      cause,
    })
  return new TrilithonError('CONFIG_VALUE_INVALID', `nobody can listen at ${address}: ${message}`, {
    path: 'rollout_transport.host',
    hint: 'Write the name or an address of the machine that the trainer runs on; 0.0.0.0 listens on all of its addresses.',
    cause,
  })
}
