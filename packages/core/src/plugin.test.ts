import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { definePlugin, manifestOf, PluginManifest } from './plugin.ts'
import { KVStore } from './seams/kv-store.ts'
import { Parallelism } from './seams/parallelism.ts'
import { Replay } from './seams/replay.ts'
import { Router } from './seams/router.ts'

const store = {} as KVStore

const plugin = definePlugin({
  name: '@acme/kv',
  fills: KVStore,
  claims: [
    { at: 'inference.kv_cache_offload', type: 'acme', keys: z.strictObject({ host: z.string().describe('Where.') }) },
    { at: 'trainer.model', keys: z.strictObject({ cp: z.int().default(1).describe('Degree.') }), inactive: { cp: 1 } },
  ],
  requires: { router: Router },
  optional: { replay: Replay, splits: Parallelism },
  capabilities: { carries_routed_experts: true },
  *check({ config, peer }) {
    expectTypeOf(config['inference.kv_cache_offload']).toEqualTypeOf<{ host: string } | undefined>()
    if (peer(Router) === undefined) yield 'No router.'
  },
  create({ config, needs }) {
    expectTypeOf(config['trainer.model']).toEqualTypeOf<{ cp: number } | undefined>()
    expectTypeOf(needs.router).toEqualTypeOf<Router>()
    expectTypeOf(needs.replay).toEqualTypeOf<Replay | undefined>()
    expectTypeOf(needs.splits).toEqualTypeOf<readonly Parallelism[] | undefined>()
    return store
  },
})

test('definePlugin types config, needs and the created value, and changes nothing', () => {
  const definition = { name: '@acme/none', fills: KVStore, claims: [], create: () => store }
  expect(definePlugin(definition)).toBe(definition)
  expectTypeOf(plugin.create).returns.toEqualTypeOf<KVStore | Promise<KVStore>>()
  // @ts-expect-error a router does not fill the seam of a store
  definePlugin({ name: '@acme/wrong', fills: KVStore, claims: [], create: () => ({}) as Router })
})

test('check yields one sentence per problem', () => {
  const run = { roles: ['inference'], workingDirectory: '.', numericsProfile: 'fp32', resolved: {} } as const
  const config = { 'inference.kv_cache_offload': undefined, 'trainer.model': undefined }
  expect([...(plugin.check?.({ config, run, peer: () => undefined }) ?? [])]).toEqual(['No router.'])
  expect([...(plugin.check?.({ config, run, peer: () => ({}) }) ?? [])]).toEqual([])
})

test('the manifest of a definition says what it claims, without running it', () => {
  const manifest = manifestOf(plugin, './dist/index.js')
  expect(manifest).toEqual({
    seam: 'kv-store',
    type: 'acme',
    runs_in: ['inference'],
    claims: [
      { at: 'inference.kv_cache_offload', type: 'acme', keys: ['host'] },
      { at: 'trainer.model', keys: ['cp'], inactive: { cp: 1 } },
    ],
    entry: './dist/index.js',
  })
  expect(PluginManifest.parse(JSON.parse(JSON.stringify(manifest)))).toEqual(manifest)
})

test('runsIn narrows the roles of the seam; without a typed claim there is no type', () => {
  const narrow = definePlugin({ name: '@acme/replay', fills: Replay, runsIn: ['trainer'], claims: [], create: () => ({}) as Replay })
  expect(manifestOf(narrow, './index.js')).toEqual({ seam: 'replay', runs_in: ['trainer'], claims: [], entry: './index.js' })
})

test.for([
  ['an unknown key', { seam: 'router', runs_in: [], claims: [], entry: './a.js', color: 'red' }],
  ['an unknown role', { seam: 'router', runs_in: ['driver'], claims: [], entry: './a.js' }],
  ['no entry', { seam: 'router', runs_in: [], claims: [] }],
  ['a claim without keys', { seam: 'router', runs_in: [], claims: [{ at: 'orchestrator.router' }], entry: './a.js' }],
])('a manifest with %s is refused', ([, manifest]) => {
  expect(PluginManifest.safeParse(manifest).success).toBe(false)
})
