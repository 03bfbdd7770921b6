import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from '@trilithon/core'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Engine } from '../engine/engine.ts'
import { ActiveRequests } from './active-requests.ts'
import { addAdminRoutes } from './admin-routes.ts'
import { createKeyCheck } from './authorise.ts'
import { addGenerateRoute } from './generate-route.ts'
import { failureOf, HttpFailure } from './http-failure.ts'
import { listenFailure } from './prepare-inference.ts'
import { RequestMetrics } from './request-metrics.ts'
import { createSeeds } from './seeds.ts'
import type { ServerContext, TextTools } from './server-context.ts'
import { addStateRoutes } from './state-routes.ts'
import { StatsReader } from './stats-reader.ts'
import { addTextRoutes } from './text-routes.ts'
import { addWeightRoutes } from './weight-routes.ts'
import { WeightUpdates } from './weight-updates.ts'

export interface InferenceServerOptions {
  readonly engine: Engine
  /** Name that requests use for the model. */
  readonly model: string
  readonly modelFolder: string
  /** Null for a folder without tokeniser files: then only token ids are served. */
  readonly text: TextTools | null
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  /** Null asks for none. */
  readonly apiKey: string | null
  readonly returnsRoutedExperts: boolean
  readonly seed: number
  readonly livenessTimeoutMs: number
  readonly log: Logger
}

export interface InferenceServer {
  /** Where it listens: `http://host:port`. */
  readonly url: string
  readonly active: ActiveRequests
  readonly stats: StatsReader
  /** Lets requests under way end within `drainMs`, ends the others with what they have, and closes every connection. */
  close(options: { readonly drainMs: number }): Promise<void>
}

/** What has no body of its own is not read beyond this. */
const bodyLimit = 1 << 20

/** Serves an engine over HTTP, as vLLM does. Throws `PORT_IN_USE`; the engine stays its owner's. */
export async function createInferenceServer(options: InferenceServerOptions): Promise<InferenceServer> {
  const { engine, model, log, host, port, apiKey } = options
  let closing: string | null = null
  const active = new ActiveRequests()
  const stats = new StatsReader(engine)
  const context: ServerContext = {
    ...{ engine, model, modelFolder: options.modelFolder, text: options.text, active, stats, log },
    startedAt: Math.floor(Date.now() / 1000),
    returnsRoutedExperts: options.returnsRoutedExperts,
    livenessTimeoutMs: options.livenessTimeoutMs,
    metrics: new RequestMetrics({ model, info: engine.info, stats }),
    weights: new WeightUpdates({ engine, active, modelFolder: options.modelFolder, log }),
    // Engines of one run have ports of their own, and so seeds of their own.
    nextSeed: createSeeds(options.seed, port),
    closing: () => closing,
  }
  const onEngineEnd = (error?: unknown) => {
    if (closing !== null) return
    closing = `the engine has ended${error instanceof Error ? `: ${error.message}` : ''}`
    active.failAll(closing)
  }
  engine.ended.then(() => onEngineEnd(), onEngineEnd)

  const server = Fastify({
    bodyLimit,
    // Longer than clients keep an idle connection, so that none is closed under a request.
    keepAliveTimeout: 75_000,
    requestTimeout: 120_000,
    forceCloseConnections: true,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 256 },
    clientErrorHandler(error, socket) {
      if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
        socket.destroy()
        return
      }
      const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
      const body = JSON.stringify(HttpFailure.body(status, 'what came is no HTTP request that this server reads'))
      socket.end(
        `HTTP/1.1 ${status} Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      )
    },
  })
  prepare(server, apiKey, log)
  addStateRoutes(server, context)
  addAdminRoutes(server, context)
  addWeightRoutes(server, context)
  addTextRoutes(server, context)
  addGenerateRoute(server, context)
  const sockets = new Set<Socket>()
  server.server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await listen(server, host, port)
  const address = server.server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host

  return {
    url: `http://${name}:${address.port}`,
    active,
    stats,
    async close({ drainMs }) {
      closing ??= 'the server is being stopped'
      // No new connections; those that are open end below.
      const closed = new Promise<void>((resolve) => server.server.close(() => resolve()))
      server.server.closeIdleConnections()
      if (!(await active.idle(drainMs))) {
        active.abortAll()
        await active.idle(200)
      }
      await written(sockets)
      server.server.closeAllConnections()
      await closed
      await server.close()
    },
  }
}

/** What was answered last is on its way; a reader that does not read is waited for no longer than this. */
async function written(sockets: ReadonlySet<Socket>, timeoutMs = 250): Promise<void> {
  const end = performance.now() + timeoutMs
  // Answers are handed to their sockets behind the end of their requests.
  do await new Promise((resolve) => setTimeout(resolve, 20))
  while (performance.now() < end && [...sockets].some(({ writableLength }) => writableLength > 0))
}

/** What holds for every route: the key, the form of errors, bodies that may be empty. */
function prepare(server: FastifyInstance, apiKey: string | null, log: Logger): void {
  if (apiKey !== null) {
    const isKey = createKeyCheck(apiKey)
    server.addHook('onRequest', async (request, reply) => {
      if (request.url.split('?', 1)[0] === '/health' || isKey(request.headers.authorization)) return
      return reply.code(401).header('www-authenticate', 'Bearer').send({ error: 'Unauthorized' })
    })
  }
  const parse = server.getDefaultJsonParser('error', 'error')
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined)
    else parse(request, body as string, done)
  })
  server.setErrorHandler((error, _, reply) => {
    const failure = failureOf(error)
    if (failure.status >= 500 && !(error instanceof HttpFailure)) log.error('a request failed', { error })
    return reply.code(failure.status).type('application/json').send(failure.toBody())
  })
  server.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const other = (['GET', 'POST'] as const).filter((method) => method !== request.method && server.hasRoute({ method, url: path }))
    if (other.length === 0) return reply.code(404).send({ detail: 'Not Found' })
    return reply.code(405).header('allow', other.join(', ')).send({ detail: 'Method Not Allowed' })
  })
}

async function listen(server: FastifyInstance, host: string, port: number): Promise<void> {
  try {
    await server.listen({ host, port })
  } catch (cause) {
    await server.close()
    throw listenFailure(host, port, cause as NodeJS.ErrnoException)
  }
}
