import { randomUUID } from 'node:crypto'
import { type Logger, TrilithonError } from '@trilithon/core'
import type { Router } from 'zeromq'
import { describeFailure } from '../episode/episode-failure.ts'
import { type FinalMessage, type PongMessage, pingPayload, RequestMessage } from './messages.ts'
import { pack, unpack } from './pack.ts'
import { SendQueue } from './send-queue.ts'

export interface RequestContext {
  /** What the asker calls the request. */
  readonly id: string
  /** Aborted when the asker cancels. */
  readonly signal: AbortSignal
  /** Sends a frame ahead of the last one. */
  readonly emit: (message: unknown) => void
}

export type RequestHandler = (message: RequestMessage, context: RequestContext) => Promise<FinalMessage>

export interface ServeFramesOptions {
  readonly router: Router
  readonly handle: RequestHandler
  readonly log: Logger
}

const ping = Buffer.from(pingPayload)

/**
 * Answers the frames of a ROUTER until it is closed: `[client, request id, payload]` in, `[client, request id, payload]` out. An empty payload cancels,
 * `ping` is answered at once, anything else is a request in msgpack. Resolves when the socket is closed.
 */
export async function serveFrames({ router, handle, log }: ServeFramesOptions): Promise<void> {
  const queue = new SendQueue(router, (error) => log.debug('an answer found nobody', { error }))
  const running = new Map<string, AbortController>()
  const pong = pack({ success: true, error: null, server: randomUUID() } satisfies PongMessage)

  const answer = async (client: Buffer, id: Buffer, payload: Buffer) => {
    const name = id.toString('latin1')
    const key = `${client.toString('hex')}/${name}`
    const controller = new AbortController()
    running.set(key, controller)
    const send = (message: unknown) => queue.send([client, id, pack(message)])
    try {
      const message = parseRequest(payload)
      send(await handle(message, { id: name, signal: controller.signal, emit: send }))
    } catch (error) {
      const reason = describeFailure(error)
      log.warn('a request cannot be answered', { reason })
      send({ success: false, error: reason } satisfies FinalMessage)
    } finally {
      running.delete(key)
    }
  }
  for await (const [client, id, payload] of router) {
    if (client === undefined || id === undefined || payload === undefined) {
      log.warn('a message has not three frames')
    } else if (payload.length === 0) running.get(`${client.toString('hex')}/${id.toString('latin1')}`)?.abort()
    else if (payload.equals(ping)) queue.send([client, id, pong])
    else void answer(client, id, payload)
  }
  for (const controller of running.values()) controller.abort()
}

function parseRequest(payload: Uint8Array): RequestMessage {
  let value: unknown
  try {
    value = unpack(payload)
  } catch (cause) {
    throw new TrilithonError('REQUEST_INVALID', `the request is no msgpack: ${(cause as Error).message}`)
  }
  const parsed = RequestMessage.safeParse(value)
  if (parsed.success) return parsed.data
  throw new TrilithonError('REQUEST_INVALID', parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '))
}
