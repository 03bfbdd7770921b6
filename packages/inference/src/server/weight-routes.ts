import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { parseBody } from './generate-request.ts'
import { HttpFailure } from './http-failure.ts'
import { refuseBody } from './refuse-body.ts'
import type { ServerContext } from './server-context.ts'

const version = z.int().min(0).max(0xffff_ffff)
const versionText = z
  .string()
  .regex(/^\d{1,10}$/, 'must be the number of a version as text')
  .transform(Number)

const Start = z.strictObject({ version, path: z.string().min(1) })
const Finish = z.strictObject({ weight_version: z.union([versionText, version]).nullish() })
/** Ours beside prime-rl's. */
const Update = z.union(
  [
    z.strictObject({ update_info: z.strictObject({ version, between_steps: z.boolean().default(false) }) }),
    z.strictObject({ weight_dir: z.string().min(1) }),
  ],
  { error: 'must be {"update_info": {"version": N, "between_steps": true or false}} or {"weight_dir": "/folder"}' },
)
const Label = z.strictObject({ new_version: z.string().min(1) })
const Checker = z.strictObject({ action: z.literal('checksum', { error: 'only "checksum" is supported here' }) })

/** How a new version of the weights arrives; see `WeightUpdates`. */
export function addWeightRoutes(server: FastifyInstance, { engine, weights }: ServerContext): void {
  server.post('/start_weight_update', async (http) => {
    const { version, path } = parseBody(Start, http.body)
    await weights.prepare(version, path)
    // Whoever updates learns here that it may leave the pause to the engine.
    return { status: 'ok', weight_version: String(version), between_steps: true }
  })
  server.post('/update_weights', async (http) => {
    const body = parseBody(Update, http.body)
    if ('weight_dir' in body) await weights.replace(body.weight_dir)
    else if (body.update_info.between_steps) {
      const { pausedSeconds, stepSeconds } = await weights.exchange(body.update_info.version)
      return { status: 'ok', paused_seconds: pausedSeconds, step_seconds: stepSeconds }
    } else await weights.flip(body.update_info.version)
    return { status: 'ok' }
  })
  server.post('/finish_weight_update', async (http) => {
    const { weight_version } = parseBody(Finish, http.body ?? {})
    return { status: 'ok', weight_version: String(await weights.finish(weight_version ?? null)) }
  })
  server.get('/weight_info', async () => ({ weight_version: String(weights.version) }))
  server.post('/update_weight_version', async (http) => {
    const { new_version } = parseBody(Label, http.body)
    // Elsewhere this is a label; here a version says which weights serve.
    if (new_version !== String(weights.version))
      throw new HttpFailure(409, `version ${weights.version} serves; it becomes another with its weights`, 'new_version')
    return { success: true, new_version }
  })
  server.post('/weight_checker', async (http) => {
    parseBody(Checker, http.body)
    const checksums = await engine.weightChecksums()
    return { checksums: Object.fromEntries(Object.entries(checksums).map(([name, sum]) => [`dp0:pp0:pcp0:tp0:${name}`, sum])) }
  })
  server.get('/get_world_size', async (http) => {
    refuseBody(http, { query: ['include_dp'] })
    return { world_size: 1 }
  })
}
