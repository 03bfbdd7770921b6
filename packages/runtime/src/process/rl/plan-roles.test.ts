import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Folder } from '../../../test/compose-in-folder.ts'
import type { RlConfiguration } from '../../roots/rl-configuration.ts'
import { divideCores } from './divide-cores.ts'
import { planRoles } from './plan-roles.ts'

let folder: Folder
beforeEach(() => {
  folder = new Folder().write({
    'rl.toml':
      '[model]\nname = "m"\n[trainer]\n[orchestrator.renderer]\nname = "default"\n[[orchestrator.train.env]]\nid = "reverse-text"\n',
  })
})
afterEach(() => folder.remove())

async function plan(flags: readonly string[], environment: NodeJS.ProcessEnv = {}, cores = 8) {
  const { resolved } = await folder.compose('rl', ['@', 'rl.toml', ...flags])
  const { rl, trainer, orchestrator, inference } = resolved
  const config = { ...rl, trainer, orchestrator, inference: inference ?? null } as unknown as RlConfiguration
  return planRoles({ config, folder: '/run', environment, commandLine: ['node', 'main.js'], cores })
}

describe('the roles of a run', () => {
  it('are engine, orchestrator and trainer, each with its file, its log and its threads', async () => {
    expect(await plan(['--inference.server.port=8000'], { HOME: '/home' })).toEqual([
      {
        name: 'inference',
        purpose: 'service',
        command: [
          'node',
          'main.js',
          'inference',
          '@',
          '/run/configs/inference.toml',
          '--server.port=8000',
          '--parallel.dp=1',
          '--output-dir=/run',
        ],
        environment: { HOME: '/home', TRILITHON_THREADS: '4' },
        log: '/run/logs/inference.log',
      },
      {
        name: 'orchestrator',
        purpose: 'work',
        command: ['node', 'main.js', 'orchestrator', '@', '/run/configs/orchestrator.toml'],
        environment: { HOME: '/home' },
        log: '/run/logs/orchestrator.log',
      },
      {
        name: 'trainer',
        purpose: 'work',
        command: ['node', 'main.js', 'trainer', '@', '/run/configs/trainer.toml'],
        environment: { HOME: '/home', TRILITHON_THREADS: '4' },
        log: '/run/logs/trainer.log',
      },
    ])
  })

  it('are several engines on neighbouring ports, which the orchestrator knows one by one', async () => {
    const roles = await plan(['--inference.parallel.dp', '2', '--deployment.num-infer-gpus', '2'])
    expect(roles.map(({ name }) => name)).toEqual(['inference-0', 'inference-1', 'orchestrator', 'trainer'])
    expect(roles.map(({ command }) => command.slice(5))).toEqual([
      ['--server.port=8000', '--parallel.dp=1', '--output-dir=/run'],
      ['--server.port=8001', '--parallel.dp=1', '--output-dir=/run'],
      ['--student.client.base-url=["http://localhost:8000/v1","http://localhost:8001/v1"]', '--student.client.dp-rank-count=1'],
      [],
    ])
    // What is passed is read back as it is meant.
    const flags = roles[2]?.command.slice(5) ?? []
    const { resolved } = await folder
      .write({ 'orchestrator.toml': '[student.model]\nname = "m"\n[renderer]\nname = "default"\n' })
      .compose('orchestrator', ['@', 'orchestrator.toml', ...flags])
    expect(resolved.orchestrator).toMatchObject({
      student: { client: { base_url: ['http://localhost:8000/v1', 'http://localhost:8001/v1'], dp_rank_count: 1 } },
    })
  })

  it('are no engine where others run them', async () => {
    expect((await plan([])).map(({ name, environment }) => [name, environment.TRILITHON_THREADS])).toEqual([
      ['orchestrator', undefined],
      ['trainer', '8'],
    ])
  })

  it('have the threads that the user says', async () => {
    const roles = await plan(['--inference.server.port=8000'], { TRILITHON_THREADS: '3' })
    expect(roles.map(({ environment }) => environment.TRILITHON_THREADS)).toEqual(['3', '3', '3'])
  })
})

it('cores are divided so that nobody is without and, from two on, no more are promised than there are', () => {
  for (let cores = 1; cores <= 64; cores++)
    for (let engines = 0; engines <= 4; engines++) {
      const { inference, trainer } = divideCores(cores, engines)
      expect(trainer).toBeGreaterThan(0)
      if (engines > 0) expect(inference).toBeGreaterThan(0)
      if (cores >= 2 * engines) expect(engines * inference + trainer).toBeLessThanOrEqual(Math.max(1, cores))
    }
})
