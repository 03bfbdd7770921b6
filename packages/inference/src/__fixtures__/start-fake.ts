import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@trilithon/core'
import { createInferenceServer, type InferenceServer, type InferenceServerOptions } from '../server/create-server.ts'
import { createFakeEngine, type FakeEngine, type FakeEngineOptions } from './fake-engine.ts'

export interface FakeService {
  readonly engine: FakeEngine
  readonly server: InferenceServer
  readonly url: string
  readonly folder: string
  /** Makes `step_N` in the folder, as if a version lay there. */
  version(number: number, content?: string): string
  get(path: string, init?: RequestInit): Promise<Response>
  post(path: string, body?: unknown, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

/** A server before a fake engine, with a model folder that has nothing in it. */
export async function startFake(engineOptions: FakeEngineOptions = {}, options: Partial<InferenceServerOptions> = {}): Promise<FakeService> {
  const engine = createFakeEngine(engineOptions)
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-serve-'))
  const server = await createInferenceServer({
    ...{ engine, model: 'm', modelFolder: folder, text: null, host: '127.0.0.1', port: 0, apiKey: null, returnsRoutedExperts: false },
    ...{ seed: 0, livenessTimeoutMs: 30_000, log: silentLogger },
    ...options,
  })
  const { url } = server
  return {
    ...{ engine, server, url, folder },
    version(number, content = 'weights') {
      const path = mkdtempSync(join(folder, 'v'))
      const named = join(path, `step_${number}`)
      writeVersion(named, number, content)
      return named
    },
    get: (path, init) => fetch(`${url}${path}`, init),
    post: (path, body, init) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        ...init,
      }),
    async close() {
      await server.close({ drainMs: 0 })
      await engine.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function writeVersion(path: string, version: number, content: string): void {
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, 'manifest.json'), JSON.stringify({ version }))
  writeFileSync(join(path, 'weights.bin'), content)
}
