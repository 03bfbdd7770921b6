import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { KnownPlugin } from '../../plugins/known-plugins.ts'
import { knownPluginSources } from './known-plugin-sources.ts'
import { writeKnownPlugins } from './write-known-plugins.ts'

const file = new URL('../../../known-plugins.json', import.meta.url)
// UPDATE_KNOWN_PLUGINS=1 writes the list anew; `biome format --write` lays it out.
if (process.env.UPDATE_KNOWN_PLUGINS === '1') writeFileSync(file, `${JSON.stringify(writeKnownPlugins(knownPluginSources), null, 2)}\n`)
const shipped: unknown = JSON.parse(readFileSync(file, 'utf8'))
const claims = knownPluginSources.flatMap((plugin) => plugin.claims)

test('the shipped list is written from the sources', () => {
  expect(shipped, 'set UPDATE_KNOWN_PLUGINS=1 and run this test again').toEqual(
    JSON.parse(JSON.stringify(writeKnownPlugins(knownPluginSources))),
  )
})

test('the shipped list has its shape', () => {
  expect(() => z.array(KnownPlugin).parse(shipped)).not.toThrow()
})

test('packages are ours, named once, and claim something', () => {
  const names = knownPluginSources.map((plugin) => plugin.package)
  expect(new Set(names).size).toBe(names.length)
  for (const { package: name, claims } of knownPluginSources) {
    expect(name).toMatch(/^@trilithon\/[a-z0-9-]+$/)
    expect(claims.length).toBeGreaterThan(0)
  }
})

test('a claim without a type has an inactive value for every key; one with a type is chosen by it', () => {
  for (const { at, type, keys } of claims) {
    if (type === undefined) expect(keys.safeParse({}).success, at).toBe(true)
  }
})

test('what was written back is the same again', () => {
  for (const { keys } of claims) {
    const parsed = keys.safeParse({})
    if (parsed.success) expect(keys.parse(parsed.data)).toEqual(parsed.data)
  }
})

const values = z.array(
  z.object({
    claims: z.array(z.object({ at: z.string(), type: z.string().optional(), keys: z.record(z.string(), z.object({ schema: z.json() })) })),
  }),
)

test('the JSON schemas judge as the sources do', () => {
  const schemaOf = (at: string, key: string, type?: string) => {
    const claim = values
      .parse(shipped)
      .flatMap((plugin) => plugin.claims)
      .find((one) => one.at === at && one.type === type && key in one.keys)
    return z.fromJSONSchema(claim?.keys[key]?.schema as Parameters<typeof z.fromJSONSchema>[0])
  }
  const wandb = schemaOf('orchestrator', 'wandb')
  expect(wandb.parse({ log_extras: { interval: 3 } })).toMatchObject({
    project: 'prime-rl',
    tags: null,
    log_extras: { samples: true, interval: 3 },
  })
  expect(wandb.parse(null)).toBeNull()
  expect(wandb.safeParse({ log_extras: { interval: 0 } }).success).toBe(false)
  expect(wandb.safeParse({ projekt: 'x' }).success).toBe(false)
  const scorers = schemaOf('inference.deployment.router', 'scorers', 'llm-d')
  expect(scorers.parse({ 'queue-scorer': 1 })).toEqual({ 'queue-scorer': 1 })
  expect(scorers.safeParse({ 'queue-score': 1 }).success).toBe(false)
  const overrides = schemaOf('inference.deployment', 'decode_vllm_overrides', 'disaggregated')
  expect(overrides.parse({ max_num_seqs: 96, deep: { list: [1, 'a', null] } })).toEqual({
    max_num_seqs: 96,
    deep: { list: [1, 'a', null] },
  })
  expect(schemaOf('trainer.model', 'cp').safeParse(0).success).toBe(false)
  expect(schemaOf('trainer.model', 'cp').safeParse(1.5).success).toBe(false)
})
