import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AnyPlugin, manifestOf, Router } from '@trilithon/core'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { z } from 'zod'
import { LimitedRouter } from './__fixtures__/limited-router.ts'
import { QueuedKVStore } from './__fixtures__/queued-kv-store.ts'
import wholeRouter from './__fixtures__/whole-plugin/whole-router.ts'
import { describePlugin } from './describe-plugin.ts'
import { hasCode } from './has-code.ts'
import { pluginCases } from './plugin-cases.ts'
import { openPluginContext } from './plugin-context.ts'
import { runCases } from './suite.ts'

describePlugin(wholeRouter, {
  packageRoot: new URL('__fixtures__/whole-plugin/', import.meta.url),
  config: { 'orchestrator.router': { window_ms: 12 } },
  needs: { store: new QueuedKVStore(1) },
  peers: { replay: { carries_routed_experts: true } },
  run: { numericsProfile: 'bf16' },
})

const keys = z.strictObject({ window_ms: z.number().default(5).describe('How long a report counts.') })

const sound = {
  name: 'planted',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'planted', keys }],
  create: () => new LimitedRouter(),
} satisfies AnyPlugin

type CaseName = (typeof pluginCases)[number]['name']

/** A fault, the one case that must fail, and what its message must say. */
interface Planted {
  readonly title: string
  readonly caught: CaseName
  readonly says: RegExp
  readonly definition?: Partial<AnyPlugin>
  readonly packageJson?: object
  readonly module?: string
}

const claim = (schema: z.ZodObject) => ({ claims: [{ at: 'orchestrator.router', type: 'planted', keys: schema }] })

const planted: readonly Planted[] = [
  {
    title: 'another name',
    caught: 'its name is that of its package',
    says: /it should be "@acme\/planted", or/,
    packageJson: { name: '@acme/planted' },
  },
  {
    title: 'a part with a bad name',
    caught: 'its name is that of its package',
    says: /"planted\/A b"/,
    definition: { name: 'planted/A b' },
    packageJson: { trilithon: undefined },
  },
  {
    title: 'no manifest',
    caught: 'the package carries its manifest',
    says: /should be:\n.*"window_ms".*undefined/s,
    packageJson: { trilithon: undefined },
  },
  {
    title: 'a manifest that lags behind',
    caught: 'the package carries its manifest',
    says: /should be:/,
    packageJson: { trilithon: { ...manifestOf(sound, './planted.mjs'), type: 'old' } },
  },
  {
    title: 'a manifest for one of several',
    caught: 'the package carries its manifest',
    says: /remove "trilithon"/,
    definition: { name: 'planted/part' },
  },
  {
    title: 'a role where the seam is not called',
    caught: 'it runs in roles of its seam',
    says: /"trainer", where router/,
    definition: { runsIn: ['trainer'] },
  },
  {
    title: 'a table claimed twice',
    caught: 'its claims name each table once, and one type at most',
    says: /orchestrator.router is claimed twice/,
    definition: { claims: [...sound.claims, { at: 'orchestrator.router', keys }] },
  },
  {
    title: 'two types',
    caught: 'its claims name each table once, and one type at most',
    says: /not by planted and other/,
    definition: { claims: [...sound.claims, { at: 'inference.router', type: 'other', keys }] },
  },
  {
    title: 'a schema that drops unknown keys',
    caught: 'every claimed table is strict',
    says: /: orchestrator.router swallows/,
    definition: claim(z.object({ window_ms: z.number().default(5).describe('How long.') })),
  },
  {
    title: 'an inner table that drops unknown keys',
    caught: 'every claimed table is strict',
    says: /: orchestrator.router.inner\[\] swallows/,
    definition: claim(
      z.strictObject({
        inner: z
          .array(z.object({ a: z.number().describe('A.') }))
          .default([])
          .describe('Inner.'),
      }),
    ),
  },
  {
    title: 'a loose schema',
    caught: 'every claimed table is strict',
    says: /swallows/,
    definition: claim(z.looseObject({ window_ms: z.number().default(5).describe('How long.') })),
  },
  {
    title: 'keys without a description',
    caught: 'every claimed key is described',
    says: /: orchestrator.router.window_ms has no description.*\norchestrator.router.inner.a has/,
    definition: claim(
      z.strictObject({
        window_ms: z.number().default(5),
        inner: z.strictObject({ a: z.number() }).nullable().default(null).describe('Inner.'),
      }),
    ),
  },
  {
    title: 'an inactive value that is not valid',
    caught: 'inactive values are values of their keys',
    says: /"no" of orchestrator.router.window_ms is not valid/,
    definition: { claims: [{ at: 'orchestrator.router', type: 'planted', keys, inactive: { window_ms: 'no' } }] },
  },
  {
    title: 'an inactive value of a key that is not there',
    caught: 'inactive values are values of their keys',
    says: /orchestrator.router.windows_ms, which is not claimed/,
    definition: { claims: [{ at: 'orchestrator.router', type: 'planted', keys, inactive: { windows_ms: 5 } }] },
  },
  {
    title: 'a capability that is no data',
    caught: 'its capabilities are data',
    says: /./,
    definition: { capabilities: { since: new Date(0) as unknown as string } },
  },
  {
    title: 'a kernel with a bad name',
    caught: 'its kernels are names, each once',
    says: /"KV copy"/,
    definition: { kernels: ['KV copy'] },
  },
  {
    title: 'a kernel twice',
    caught: 'its kernels are names, each once',
    says: /a is named twice/,
    definition: { kernels: ['a', 'b', 'a'] },
  },
  {
    title: 'a check that refuses the example',
    caught: 'its check finds nothing wrong with the example configuration, twice',
    says: /no good/,
    definition: { check: () => ['no good'] },
  },
  {
    title: 'a check that remembers',
    caught: 'its check finds nothing wrong with the example configuration, twice',
    says: /again/,
    definition: {
      check: (
        (calls) => () =>
          calls++ === 0 ? [] : ['again']
      )(0),
    },
  },
  {
    title: 'a second dispose that fails',
    caught: 'it is created twice, and each is disposed twice',
    says: /disposed already/,
    definition: {
      create: () => {
        let times = 0
        return { dispose: async () => assert.equal(times++, 0, 'disposed already') }
      },
    },
  },
  {
    title: 'a create that works once',
    caught: 'it is created twice, and each is disposed twice',
    says: /created already/,
    definition: {
      create: ((times) => () => {
        assert.equal(times++, 0, 'created already')
        return new LimitedRouter()
      })(0),
    },
  },
  ...(
    [
      ['prints', "console.log('hello')", /prints: hello/],
      ['starts a timer', 'setInterval(() => {}, 1000)', /starts work \(Timeout\)\n.*keeps the process alive/],
      ['starts a timer that holds nothing', 'setTimeout(() => {}, 1).unref()', /starts work \(Timeout\)/],
      ['starts something a turn later', 'Promise.resolve().then(() => setImmediate(() => {}))', /starts work \(Immediate\)/],
      ['starts a process', "(await import('node:child_process')).execFile(process.execPath, ['--version'])", /starts work \(PROCESSWRAP\)/],
      ['opens a port', "(await import('node:net')).createServer().listen(0).unref()", /starts work \(TCPSERVERWRAP\)/],
      ['adds a global', 'globalThis.planted = 1', /changes globalThis.planted/],
      ['replaces a global', 'globalThis.fetch = () => {}', /changes globalThis.fetch/],
      ['sets a variable', "process.env.PLANTED = '1'", /changes the environment variable PLANTED/],
      ['listens to signals', "process.on('SIGINT', () => {}).on('exit', () => {})", /process event "exit"\n.*process event "SIGINT"/],
      ['throws', "throw new Error('at import')", /throws: at import/],
      ['ends the process', 'process.exit(7)', /ends the process \(status 7\)/],
      [
        'exports something else',
        'export const other = 1\nexport { other as default }',
        /the default export of .\/planted.mjs is the definition/,
      ],
    ] as const
  ).map(([title, module, says]) => ({ title: `an entry that ${title}`, caught: 'importing it does nothing' as const, says, module })),
]

describe('plugin suite', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'trilithon-plugin-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** Cases that fail for the sound plugin with the fault planted; each package has its own folder, so that its import is tried anew. */
  const failures = async ({ definition = {}, packageJson = {}, module = '' }: Partial<Planted>) => {
    const whole: AnyPlugin = { ...sound, ...definition }
    const packageRoot = mkdtempSync(join(folder, 'package-'))
    const files = {
      name: 'planted',
      type: 'module',
      exports: './planted.mjs',
      trilithon: manifestOf(whole, './planted.mjs'),
      ...packageJson,
    }
    writeFileSync(join(packageRoot, 'package.json'), JSON.stringify(files))
    const defaultExport = module.includes('default') ? '' : `export default { name: ${JSON.stringify(whole.name)} };\n`
    writeFileSync(join(packageRoot, 'planted.mjs'), defaultExport + module)
    // Starting a process for each fault would only repeat what the faults of the import show.
    const cases = module === '' ? pluginCases.filter(({ name }) => name !== 'importing it does nothing') : pluginCases
    const results = await runCases(cases, async () => openPluginContext(whole, { packageRoot }))
    return results.flatMap((result) => (result.status === 'failed' ? [result] : []))
  }

  it('passes a sound plugin', async () => {
    assert.deepEqual(await failures({ module: '\n' }), [])
  })

  it.concurrent.each(planted)('catches $title', async (fault) => {
    const failed = await failures(fault)
    assert.deepEqual(
      failed.map(({ name }) => name),
      [fault.caught],
    )
    assert.match(String(failed[0]?.error), fault.says)
  })

  it('says where an example is missing, and where there is no package', () => {
    const example = openPluginContext(wholeRouter, { packageRoot: new URL('__fixtures__/whole-plugin/', import.meta.url) })
    assert.throws(() => example.parseConfig(), hasCode('CONFIG_VALUE_INVALID'))
    assert.throws(() => example.parseConfig(), /example of orchestrator.router is not valid:\n.*expected number.*\n.*window_ms/)
    assert.throws(() => openPluginContext(sound, { packageRoot: folder }), hasCode('USAGE_INVALID'))
  })

  it('has a planted fault for every case', () => {
    const caught = new Set<string>(planted.map((fault) => fault.caught))
    assert.deepEqual(
      pluginCases.map(({ name }) => name).filter((name) => !caught.has(name)),
      [],
    )
  })
})
