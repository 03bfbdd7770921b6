import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { ServerContext } from './server-context.ts'

/** The server whose answers these are like, and whose they are. */
const version = '0.32.0+trilithon'

/** What the server is and how it does. */
export function addStateRoutes(server: FastifyInstance, context: ServerContext): void {
  const { engine, model, modelFolder, startedAt, active, stats, metrics, livenessTimeoutMs } = context
  server.get('/health', async (_, reply) => reply.code(context.closing() === null ? 200 : 503).send())
  server.route({
    method: ['GET', 'POST'],
    url: '/ping',
    handler: async (_, reply) => reply.code(context.closing() === null ? 200 : 503).send(),
  })
  server.get('/liveness', async (_, reply) => {
    const isAlive = context.closing() === null && stats.read().idleMs <= livenessTimeoutMs
    return reply.code(isAlive ? 200 : 503).send({ status: isAlive ? 'ok' : 'engine_unresponsive' })
  })
  server.get('/version', async () => ({ version }))
  server.get('/load', async () => ({ server_load: active.size }))
  server.get('/metrics', async (_, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  const permission = {
    ...{ id: `modelperm-${randomBytes(8).toString('hex')}`, object: 'model_permission', created: startedAt },
    ...{ allow_create_engine: false, allow_sampling: true, allow_logprobs: true, allow_search_indices: false, allow_view: true },
    ...{ allow_fine_tuning: false, organization: '*', group: null, is_blocking: false },
  }
  const described = {
    ...{ id: model, object: 'model', created: startedAt, owned_by: 'trilithon', root: modelFolder, parent: null },
    ...{ max_model_len: engine.info.maxModelLen, permission: [permission] },
  }
  server.get('/v1/models', async () => ({ object: 'list', data: [described] }))
}
