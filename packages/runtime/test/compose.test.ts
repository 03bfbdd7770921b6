import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KVStore, Replay, Router, silentLogger } from '@trilithon/core'
import { afterEach, describe, expect, it } from 'vitest'
import { createPlugins } from '../src/create-plugins.ts'
import { resolvedToml, writeResolved } from '../src/report/write-resolved.ts'
import { Folder } from './compose-in-folder.ts'

let folder = new Folder()
afterEach(() => {
  folder.remove()
  folder = new Folder()
})

const minimal = '[trainer]\n[orchestrator]\n[inference]\n[model]\nname = "m"\n[orchestrator.renderer]\nname = "default"\n'

describe('composition', () => {
  it('lays files over each other and flags over all, and remembers where each value came from', async () => {
    folder.write({ 'a.toml': `max_steps = 5\n${minimal}`, 'b.toml': 'max_steps = 7\n[orchestrator]\nbatch_size = 64\n' })
    const { resolved, tree } = await folder.compose('rl', ['@', 'a.toml', '@', 'b.toml', '--orchestrator.group-size', '8'])
    expect(resolved.orchestrator).toMatchObject({ batch_size: 64, group_size: 8, max_steps: 7 })
    expect(tree.entries.get('max_steps')?.source).toMatchObject({ file: 'b.toml', line: 1 })
  })

  it('replaces lists whole, also a default list', async () => {
    folder.write({
      'a.toml': `${minimal}[[orchestrator.train.env]]\nname = "a"\n[[orchestrator.train.env]]\nname = "b"\n`,
      'b.toml': '[[orchestrator.train.env]]\nname = "c"\n[[orchestrator.post_batch_filters]]\ntype = "repetition"\n',
    })
    const { resolved } = await folder.compose('rl', ['@', 'a.toml', '@', 'b.toml'])
    expect(resolved.orchestrator).toMatchObject({
      train: { env: [{ name: 'c' }] },
      post_batch_filters: [{ type: 'repetition', enforce: false }],
    })
  })

  it('shares keys with the roles that are there, and only with those', async () => {
    folder.write({ 'a.toml': `${minimal.replace('[inference]\n', '')}` })
    const { resolved, roles } = await folder.compose('rl', ['@', 'a.toml', '--seq-len', '512', '--output-dir', 'out'])
    expect(roles).toEqual(['trainer', 'orchestrator'])
    expect(resolved.rl?.inference).toBeNull()
    expect(resolved.trainer).toMatchObject({ model: { name: 'm', seq_len: 512 }, output_dir: 'out', numerics_profile: 'fp32' })
    expect(resolved.orchestrator).toMatchObject({ seq_len: 512, output_dir: 'out/run_default', student: { model: { name: 'm' } } })
  })

  it('takes the level of the log from the environment, below files and flags', async () => {
    folder.write({ 'a.toml': minimal })
    const environment = { PRIME_LOG_LEVEL: 'debug' }
    expect((await folder.compose('rl', ['@', 'a.toml'], { environment })).resolved.trainer).toMatchObject({ log: { level: 'debug' } })
    expect((await folder.compose('rl', ['@', 'a.toml', '--log.level', 'error'], { environment })).resolved.trainer).toMatchObject({
      log: { level: 'error' },
    })
    const [problem] = await folder.problems('rl', ['@', 'a.toml'], { environment: { PRIME_LOG_LEVEL: 'loud' } })
    expect(problem?.source).toEqual({ kind: 'environment', variable: 'PRIME_LOG_LEVEL' })
  })

  it('reports everything that is wrong together, in the order in which it was written, flags last', async () => {
    folder.write({
      'a.toml': `${minimal}[trainer.optim]\nlr = "fast"\n[orchestrator.train.sampling]\ntemperature = -1\n[inference.model]\ndtypo = 1\n`,
    })
    const problems = await folder.problems('rl', ['@', 'a.toml', '--orchestrator.batch-sise', '3'])
    expect(problems.map(({ code, path }) => [code, path])).toEqual([
      ['CONFIG_VALUE_INVALID', 'trainer.optim.lr'],
      ['CONFIG_VALUE_INVALID', 'orchestrator.train.sampling.temperature'],
      ['CONFIG_KEY_UNKNOWN', 'inference.model.dtypo'],
      ['USAGE_INVALID', 'orchestrator.batch_sise'],
    ])
    for (const { hint, source } of problems) expect([hint, source]).not.toContain(undefined)
  })

  it('reports several faults of one key, and one fault of a key that several roles take over', async () => {
    folder.write({ 'a.toml': `seq_len = 0\n${minimal}[weight_broadcast]\nquantize_in_weight_transfer = true\n` })
    expect((await folder.problems('rl', ['@', 'a.toml'])).map(({ path }) => path)).toEqual(['seq_len'])
    const problems = await folder.problems('rl', ['@', 'a.toml', '--seq-len', '64'])
    expect(problems.map(({ path, message }) => [path, /by nccl only|"custom"/.exec(message)?.[0]])).toEqual([
      ['weight_broadcast.quantize_in_weight_transfer', 'by nccl only'],
      ['weight_broadcast.quantize_in_weight_transfer', '"custom"'],
    ])
  })

  it('combines all conflicts of shared keys into one error that names the places', async () => {
    folder.write({
      'a.toml': `max_steps = 5\nseq_len = 64\n${minimal}`,
      'b.toml': '[trainer]\nmax_steps = 6\n[orchestrator]\nmax_steps = 5\nseq_len = 32\n',
    })
    const problems = await folder.problems('rl', ['@', 'a.toml', '@', 'b.toml'])
    const conflicts = problems.filter(({ code }) => code === 'CONFIG_VALUE_CONFLICT')
    expect(conflicts).toHaveLength(1)
    expect(conflicts[0]?.message).toMatch(/^2 keys differ .*trainer\.max_steps.* 6.*b\.toml:2.*orchestrator\.seq_len.*b\.toml:5/)
  })

  it('says of a shared table of another type that it differs, and no more', async () => {
    folder.write({
      'a.toml': `[rollout_transport]\ntype = "zmq"\nport = 6000\nhwm = 3\n${minimal}`,
      'b.toml': '[orchestrator.rollout_transport]\ntype = "filesystem"\n',
    })
    expect(await folder.problems('rl', ['@', 'a.toml', '@', 'b.toml'])).toMatchObject([
      { code: 'CONFIG_VALUE_CONFLICT', path: 'orchestrator.rollout_transport.type', source: { file: 'b.toml', line: 2 } },
    ])
  })

  it('knows a file of another root, and a table that is missing', async () => {
    folder.write({ 'sft.toml': 'max_steps = 5\n[data]\nname = "d"\n[val]\ninterval = 5\n', 'half.toml': '[trainer]\n' })
    expect(await folder.problems('rl', ['@', 'sft.toml'])).toMatchObject([
      { code: 'CONFIG_ROOT_WRONG', source: { file: 'sft.toml' }, hint: 'Run: trilithon sft @ sft.toml' },
    ])
    expect(await folder.problems('rl', ['@', 'half.toml'])).toMatchObject([{ code: 'CONFIG_VALUE_INVALID', path: 'orchestrator' }])
  })

  it('names every unreadable file at once', async () => {
    const problems = await folder.problems('rl', ['@', 'x.toml', '@', 'y.toml', '--max-steps'])
    expect(problems.map(({ code, path }) => [code, path])).toEqual([
      ['CONFIG_FILE_UNREADABLE', 'x.toml'],
      ['CONFIG_FILE_UNREADABLE', 'y.toml'],
    ])
  })

  it('writes resolved files that read back to themselves', async () => {
    folder.write({
      'a.toml': `${minimal}[orchestrator.advantage]\n[trainer]\n`.replace(/\[trainer\]\n$/, ''),
      'b.toml': '[orchestrator]\nadvantage = "None"\n[trainer.optim]\nmax_norm = "None"\n',
    })
    const composition = await folder.compose('rl', ['@', 'a.toml', '@', 'b.toml', '--dry-run'])
    expect(composition.resolved.rl?.dry_run).toBe(true)
    const files = writeResolved(composition)
    expect(files).toEqual(['trainer', 'orchestrator', 'inference'].map((name) => `outputs/configs/${name}.toml`))
    for (const name of ['trainer', 'orchestrator', 'inference'] as const) {
      const again = await folder.compose(name, ['@', `outputs/configs/${name}.toml`])
      expect(again.resolved[name]).toEqual(composition.resolved[name])
      expect(resolvedToml(again, name)).toBe(readFileSync(join(folder.path, `outputs/configs/${name}.toml`), 'utf8'))
    }
    expect(composition.resolved.orchestrator?.advantage).toBeNull()
    expect(readFileSync(join(folder.path, 'outputs/configs/orchestrator.toml'), 'utf8')).toContain('advantage = "None"')
  })

  it('refuses an output folder that cannot be written', async () => {
    folder.write({ 'a.toml': minimal, outputs: 'a file' })
    const composition = await folder.compose('rl', ['@', 'a.toml'])
    expect(() => writeResolved(composition)).toThrow(expect.objectContaining({ code: 'OUTPUT_UNUSABLE' }))
  })
})

describe('keys that nobody here reads', () => {
  it('list a feature that is not built and a package that is not here, and accept both at their inactive values', async () => {
    folder.write({ 'a.toml': minimal })
    const active = await folder.compose('rl', [
      '@',
      'a.toml',
      '--trainer.enable-router-replay',
      '--trainer.model.fp8',
      '--numerics-profile',
      'bf16',
    ])
    expect(active.unavailable.map(({ path, code }) => [path, code])).toEqual(
      expect.arrayContaining([
        ['trainer.enable_router_replay', 'FEATURE_UNAVAILABLE'],
        ['trainer.model.fp8', 'FEATURE_UNAVAILABLE'],
        ['numerics_profile', 'FEATURE_UNAVAILABLE'],
      ]),
    )
    const idle = await folder.compose('rl', ['@', 'a.toml', '--no-trainer.model.fp8', '--trainer.model.ep', '1'])
    expect(idle.unavailable).toEqual([])
    expect(idle.resolved.trainer).toMatchObject({ model: { fp8: false, ep: 1 } })
  })

  it('check the value of a key whose package is not here', async () => {
    folder.write({ 'a.toml': `${minimal}[trainer.model]\ncp = "two"\n` })
    expect(await folder.problems('rl', ['@', 'a.toml'])).toMatchObject([
      { code: 'CONFIG_VALUE_INVALID', path: 'trainer.model.cp', source: { line: 9 } },
    ])
  })

  it('say which ones only an external backend reads', async () => {
    folder.write({ 'a.toml': minimal })
    const { ignored } = await folder.compose('rl', ['@', 'a.toml', '--trainer.model.attn', 'sdpa'])
    expect(ignored.map(({ path }) => path)).toContain('trainer.model.attn')
  })
})

describe('choice of plugins', () => {
  const local = (name: string, body: string) => ({
    [name]: `import { definePlugin, KVStore, Precision, Replay, Router } from '@trilithon/core'\nimport { z } from 'zod'\n${body}`,
  })
  const router = (type: string, more = '') =>
    `export default definePlugin({ name: '${type}', fills: Router, claims: [{ at: 'orchestrator.router', type: '${type}', keys: z.strictObject({ weight: z.number().default(1).describe('w') }) }], ${more}
      create: ({ config }) => ({ config, route: () => ({ status: 'wait', reason: 'never' }), endSession() {}, stats: () => ({ leases: 0, sessions: 0, leasesByWorker: {} }), dispose: async () => {} }) })`

  const toml = (plugins: string, table = '') => `plugins = [${plugins}]\n[renderer]\nname = "default"\n${table}`

  it('gives the default of a slot, and null of one that is empty by default', async () => {
    const { plugins } = await folder.write({ 'a.toml': minimal }).compose('rl', ['@', 'a.toml'])
    expect(plugins.map(({ definition }) => definition.fills.id).sort()).toEqual(['parallelism', 'precision', 'replay', 'router'])
    expect(plugins.find(({ definition }) => definition.fills.key === Router.key)?.candidate.name).toBe('@trilithon/builtin/sticky-router')
    const stored = await folder.compose('rl', [
      '@',
      'a.toml',
      '--inference.kv-cache-offload',
      '{"type": "native", "cpu": {"num_bytes": 1000}}',
    ])
    expect(stored.plugins.find(({ definition }) => definition.fills.key === KVStore.key)?.candidate.name).toBe(
      '@trilithon/builtin/memory-kv-store',
    )
    expect(stored.resolved.inference).toMatchObject({ kv_cache_offload: { type: 'native', cpu: { num_bytes: 1000 } } })
  })

  it('takes local files, JavaScript and TypeScript, and parses their keys', async () => {
    folder.write({
      ...local('r.mjs', router('mine')),
      ...local('r.ts', `type Weight = number\nconst weight: Weight = 1\nvoid weight\n${router('typed')}`),
      'a.toml': toml('"./r.mjs", "./r.ts"', '[router]\ntype = "mine"\nweight = 2.5\n'),
    })
    const mine = await folder.compose('orchestrator', ['@', 'a.toml'])
    expect(mine.plugins[0]).toMatchObject({
      candidate: { name: './r.mjs', origin: 'local' },
      config: { 'orchestrator.router': { weight: 2.5 } },
    })
    expect(mine.notices).toEqual(['The plugin ./r.ts is listed, and no key chooses it.'])
    const typed = await folder.compose('orchestrator', ['@', 'a.toml', '--router.type', 'typed'])
    expect(typed.plugins[0]?.candidate.name).toBe('./r.ts')
    expect(typed.resolved.orchestrator).toMatchObject({ router: { type: 'typed', weight: 1 } })
  })

  it('chooses an installed package by its manifest, by full name or claimed word, and runs nothing else', async () => {
    const manifest = {
      seam: 'router',
      type: 'far',
      runs_in: ['orchestrator'],
      claims: [{ at: 'orchestrator.router', type: 'far', keys: ['weight'] }],
      entry: 'index.js',
    }
    const ends = { ...manifest, type: 'trap', claims: [{ ...manifest.claims[0], type: 'trap' }] }
    folder.write({
      'package.json': '{"dependencies": {"@acme/far": "1.0.0", "trap": "1.0.0"}}',
      'node_modules/@acme/far/package.json': JSON.stringify({ name: '@acme/far', version: '1.0.0', type: 'module', trilithon: manifest }),
      'node_modules/@acme/far/index.js': `const seam = { id: 'router', version: 1, key: Symbol.for('@trilithon/seam/router@1'), cardinality: 'one', thread: 'main', runsIn: ['orchestrator'] }
        import { z } from ${JSON.stringify(import.meta.resolve('zod'))}
        export default { name: '@acme/far', fills: seam, claims: [{ at: 'orchestrator.router', type: 'far', keys: z.strictObject({ weight: z.number().default(3).describe('w') }) }], create: async () => ({ dispose: async () => {} }) }`,
      'node_modules/trap/package.json': JSON.stringify({ name: 'trap', version: '1.0.0', type: 'module', trilithon: ends }),
      'node_modules/trap/index.js': 'process.exit(77)',
      'a.toml': toml(''),
    })
    for (const type of ['far', '@acme/far']) {
      const { plugins, resolved } = await folder.compose('orchestrator', ['@', 'a.toml', '--router.type', type])
      expect(plugins[0]).toMatchObject({
        candidate: { name: '@acme/far', origin: 'installed', version: '1.0.0' },
        config: { 'orchestrator.router': { weight: 3 } },
      })
      expect(resolved.orchestrator).toMatchObject({ router: { type, weight: 3 } })
    }
  })

  it('refuses a need for a seam whose filling lives in another process', async () => {
    folder.write({
      ...local('p.mjs', router('p', 'requires: { store: KVStore },')),
      'a.toml': `plugins = ["./p.mjs"]\n${minimal}[inference.kv_cache_offload]\ntype = "native"\ncpu = { num_bytes = 1000 }\n[orchestrator.router]\ntype = "p"\n`,
    })
    expect(await folder.problems('rl', ['@', 'a.toml'])).toMatchObject([
      { code: 'SEAM_UNFILLED', message: 'p needs the seam kv-store, and none fills it in the role orchestrator' },
    ])
  })

  it('checks kernels before anything is created', async () => {
    folder.write({ ...local('p.mjs', router('p', "kernels: ['kv-block-copy'],")), 'a.toml': toml('"./p.mjs"', '[router]\ntype = "p"\n') })
    const kernelReason = (kernel: string) => `${kernel} needs sm_90a`
    expect(await folder.problems('orchestrator', ['@', 'a.toml'], { kernelReason })).toMatchObject([
      { code: 'KERNEL_UNAVAILABLE', message: 'p needs the kernel kv-block-copy: kv-block-copy needs sm_90a' },
    ])
  })

  it('creates what needs come first, hands it over, and disposes newest first', async () => {
    folder.write({
      ...local(
        'p.mjs',
        router('p', 'requires: { replay: Replay }, optional: { store: KVStore },')
          .replace('create: ({ config })', 'create: ({ config, needs })')
          .replace('({ config, route', '({ config, needs, route'),
      ),
      'a.toml': toml('"./p.mjs"', '[router]\ntype = "p"\n'),
    })
    const { plugins, run } = await folder.compose('orchestrator', ['@', 'a.toml'])
    expect(plugins.map(({ definition }) => definition.fills.id)).toEqual(['replay', 'router'])
    const container = await createPlugins(plugins, { run, log: silentLogger, signal: new AbortController().signal })
    const created = container.resolve(Router) as unknown as { needs: { replay: unknown; store: unknown } }
    expect(created.needs).toEqual({ replay: container.resolve(Replay), store: undefined })
    await container.dispose()
    await container.dispose()
  })

  it('disposes of what was created when a later plugin fails', async () => {
    folder.write({
      ...local(
        'p.mjs',
        router('p', 'requires: { replay: Replay },').replace(/create: .*\}\) \}\)$/s, "create: () => { throw new Error('no port') } })"),
      ),
      ...local(
        'q.mjs',
        "globalThis.disposedReplay = false\nexport default definePlugin({ name: 'q', fills: Replay, claims: [], create: () => ({ dispose: async () => { globalThis.disposedReplay = true } }) })",
      ),
      'a.toml': toml('"./p.mjs", "./q.mjs"', '[router]\ntype = "p"\n'),
    })
    const { plugins, run } = await folder.compose('orchestrator', ['@', 'a.toml'])
    await expect(createPlugins(plugins, { run, log: silentLogger, signal: new AbortController().signal })).rejects.toMatchObject({
      code: 'PLUGIN_FAILED',
      message: 'p could not be created: no port',
    })
    expect(globalThis).toMatchObject({ disposedReplay: true })
  })
})

describe('switching a variant', () => {
  it('drops what only the old variant knows, between files and by a flag, and keeps what both know', async () => {
    folder.write({
      'a.toml': `${minimal}[trainer.optim]\ntype = "muon"\nmu = 0.9\nlr = 0.5\n[trainer.scheduler]\ntype = "linear"\ndecay_steps = 3\nwarmup_steps = 4\n`,
      'b.toml': '[trainer.scheduler]\ntype = "cosine"\n',
    })
    const { resolved } = await folder.compose('rl', ['@', 'a.toml', '@', 'b.toml', '--trainer.optim.type', 'sgd'])
    expect(resolved.trainer).toMatchObject({ optim: { type: 'sgd', lr: 0.5 }, scheduler: { type: 'cosine', warmup_steps: 4 } })
    expect(await folder.problems('rl', ['@', 'a.toml', '--trainer.optim.type', 'sgd', '--trainer.optim.mu', '1'])).toMatchObject([
      { code: 'USAGE_INVALID', path: 'trainer.optim.mu' },
    ])
  })

  it('drops all keys of another plugin', async () => {
    folder.write({ 'a.toml': `${minimal}[inference.kv_cache_offload]\ntype = "mooncake"\ndevice_name = "x"\ncpu = { num_bytes = 5 }\n` })
    const { resolved, unavailable } = await folder.compose('rl', [
      '@',
      'a.toml',
      '--inference.kv-cache-offload',
      '{"type": "native", "cpu": {"num_bytes": 7}}',
    ])
    expect(resolved.inference).toMatchObject({ kv_cache_offload: { type: 'native', cpu: { num_bytes: 7 } } })
    expect(unavailable).toEqual([])
  })

  it('lists a variant that is not built', async () => {
    folder.write({ 'a.toml': minimal })
    const { unavailable } = await folder.compose('rl', ['@', 'a.toml', '--orchestrator.renderer.name', 'kimi-k2'])
    expect(unavailable).toMatchObject([
      { path: 'orchestrator.renderer.name', value: 'kimi-k2', source: { flag: '--orchestrator.renderer.name' } },
    ])
  })
})

describe('keys that are switched off', () => {
  it('by --no- and by "None", whoever owns them', async () => {
    folder.write({ 'a.toml': `${minimal}[wandb]\nproject = "p"\n`, 'b.toml': 'inference = "None"\n' })
    expect((await folder.compose('rl', ['@', 'a.toml', '--no-wandb'])).unavailable).toEqual([])
    const { resolved, roles } = await folder.compose('rl', ['@', 'a.toml', '@', 'b.toml'])
    expect(resolved.rl?.inference).toBeNull()
    expect(roles).not.toContain('inference')
  })
})
