import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { PauseMode } from '../engine/engine.ts'
import { parseBody } from './generate-request.ts'
import { HttpFailure } from './http-failure.ts'
import { queryFlag, refuseBody } from './refuse-body.ts'
import type { ServerContext } from './server-context.ts'

const modes: readonly string[] = ['abort', 'wait', 'keep'] satisfies readonly PauseMode[]
const Abort = z.strictObject({ request_ids: z.array(z.string().max(1024)).max(100_000) })

/** Pausing, ending requests, and the prefix cache. Every call may come again. */
export function addAdminRoutes(server: FastifyInstance, { engine, active, stats, weights, log }: ServerContext): void {
  server.post('/pause', async (http) => {
    refuseBody(http, { query: ['mode', 'clear_cache'] })
    const { mode = 'abort' } = http.query as { readonly mode?: string }
    if (!modes.includes(mode)) throw new HttpFailure(400, `mode must be one of ${modes.join(', ')}`, 'query.mode')
    const clears = queryFlag(http, 'clear_cache')
    await engine.pause(mode as PauseMode)
    if (clears) await engine.resetPrefixCache({ isExternal: false })
    log.info('paused', { mode })
    return { status: 'paused' }
  })
  server.get('/is_paused', async () => ({ is_paused: stats.read().isPaused }))
  server.post('/resume', async (http) => {
    refuseBody(http)
    await weights.settled()
    await engine.resume()
    log.info('resumed', { version: weights.version })
    return { status: 'resumed' }
  })
  server.post('/reset_prefix_cache', async (http) => {
    refuseBody(http, { query: ['reset_running_requests', 'reset_external'] })
    if (queryFlag(http, 'reset_running_requests'))
      throw new HttpFailure(400, 'running requests keep their KV here: end them with /abort_requests', 'query.reset_running_requests')
    await engine.resetPrefixCache({ isExternal: queryFlag(http, 'reset_external') })
    return { success: true }
  })
  for (const path of ['/abort_requests', '/inference/v1/abort_requests']) {
    server.post(path, async (http, reply) => {
      active.abort(parseBody(Abort, http.body).request_ids)
      return reply.code(200).send()
    })
  }
}
