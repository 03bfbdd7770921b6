import { TrilithonError } from '@trilithon/core'
import { afterEach, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { findRoot, type RootName, rootNames } from '../src/compose/root-definitions.ts'
import { choicesOf, discriminatorOf, elementOf, objectKeys, shapeOf, unionOptions } from '../src/config/shape.ts'
import { valueAt } from '../src/config/tree.ts'
import { resolvedToml } from '../src/report/write-resolved.ts'
import type { RlConfiguration } from '../src/roots/rl-configuration.ts'
import { worldSizes } from '../src/roots/world-sizes.ts'
import { allClaims } from './arbitrary-configuration.ts'
import { Folder } from './compose-in-folder.ts'

// Faults that users of comparable systems have reported; the rows are those of table A.

let folder = new Folder()
afterEach(() => {
  folder.remove()
  folder = new Folder()
})

interface Key {
  readonly path: string
  readonly schema: z.core.$ZodType
  /** Flags that choose the variant of a union that has the key. */
  readonly needs: readonly string[]
}

/** Keys of a root that a flag reaches: those of tables, of every member of a union, and those that packages claim; not those inside lists. */
function keysOf(name: RootName): Key[] {
  const { mounts } = findRoot(name)
  const visit = (schema: z.core.$ZodType, path: string, needs: readonly string[]): Key[] => {
    const { core } = shapeOf(schema)
    const discriminator = discriminatorOf(core)
    return (unionOptions(core) ?? [core]).flatMap((option) => {
      const keys = objectKeys(shapeOf(option).core) ?? {}
      const [choice] = discriminator === undefined ? [] : (choicesOf(shapeOf(keys[discriminator] ?? option).core) ?? [])
      const all = discriminator === undefined ? needs : [...needs, `--${path}.${discriminator}=${choice}`]
      return Object.entries(keys).flatMap(([key, below]) => {
        const place = path === '' ? key : `${path}.${key}`
        return [{ path: place, schema: below, needs: all }, ...visit(below, place, all)]
      })
    })
  }
  return mounts
    .filter(({ at }) => at.length === 0)
    .flatMap(({ root }) => [
      ...visit(root.schema, '', []),
      ...allClaims()
        .filter(({ at, type }) => type === undefined && (at === root.name || at.startsWith(`${root.name}.`)))
        .flatMap(({ at, keys }) => visit(keys, at.slice(root.name.length + 1), [])),
    ])
}

const roles = ['trainer', 'sft', 'orchestrator', 'inference', 'env-server'] as const

describe('known fault A1: an option set to null comes back at its default', () => {
  // Null asks for a value that follows from others.
  const follows = /tokenizer\.name|tokenizer\.trust_remote_code|batch_size|max_inflight_rollouts|num_workers/
  const cases = roles.flatMap((name) => {
    const nullable = keysOf(name).filter(({ schema }) => {
      const { nullable, hasDefault, defaultValue } = shapeOf(schema)
      return nullable && hasDefault && defaultValue !== null
    })
    return [...new Map(nullable.map((key) => [key.path, key])).values()].map(({ path }) => [name, path] as const)
  })

  it('is looked for at every key whose default is another value', () => {
    expect(cases.length).toBeGreaterThan(8)
    expect(cases.some(([, path]) => follows.test(path))).toBe(false)
  })

  it.each(cases)('%s: %s', async (name, path) => {
    // Tables on the way are switched on by the flag itself.
    const { resolved } = await folder.compose(name, [`--${path}=None`])
    expect(valueAt(resolved[name], path.split('.'))).toBeNull()
    folder.write({ 'resolved.toml': resolvedToml(await folder.compose(name, [`--${path}=None`]), name) })
    const again = await folder.compose(name, ['@', 'resolved.toml'])
    expect(again.resolved[name]).toEqual(resolved[name])
  })
})

const rl = '[trainer]\n[orchestrator]\n[inference]\n'

it('known fault A2: three roles and two transports make eight cases, of which exactly two pass', async () => {
  const types = ['filesystem', 'nccl']
  const passing: string[] = []
  folder.write({ 'rl.toml': `${rl}[deployment]\nnum_train_gpus = 1\nnum_infer_gpus = 1\n` })
  for (const trainer of types)
    for (const orchestrator of types)
      for (const inference of types) {
        const flags = Object.entries({ trainer, orchestrator, inference }).flatMap(([role, type]) => [
          `--${role}.weight-broadcast.type`,
          type,
        ])
        const sound = await folder.compose('rl', ['@', 'rl.toml', ...flags]).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'CONFIG_VALUE_CONFLICT', path: 'trainer.weight_broadcast.type' })
        })
        if (sound !== undefined) passing.push([trainer, orchestrator, inference].join())
      }
  expect(passing).toEqual(['filesystem,filesystem,filesystem', 'nccl,nccl,nccl'])
})

describe('known fault A4: a group that waits for ranks that do not exist', () => {
  interface Row {
    readonly nodes: number
    readonly replicas?: number
    readonly gpus: number
    readonly tp: number
    readonly dp?: number
    readonly experts?: boolean
    readonly disaggregated?: boolean
    readonly size: number
    readonly servers: number
  }
  const table: readonly Row[] = [
    { nodes: 0, gpus: 1, tp: 1, size: 1, servers: 1 },
    { nodes: 0, gpus: 6, tp: 2, size: 6, servers: 3 },
    { nodes: 0, gpus: 4, tp: 4, size: 4, servers: 1 },
    { nodes: 0, gpus: 4, tp: 1, dp: 4, size: 4, servers: 4 },
    { nodes: 1, gpus: 8, tp: 1, size: 8, servers: 8 },
    { nodes: 1, gpus: 8, tp: 8, size: 8, servers: 1 },
    { nodes: 2, gpus: 8, tp: 2, size: 16, servers: 4 },
    { nodes: 2, gpus: 8, tp: 8, size: 16, servers: 1 },
    { nodes: 2, gpus: 4, tp: 2, dp: 2, size: 8, servers: 2 },
    { nodes: 2, gpus: 8, tp: 2, dp: 8, size: 16, servers: 4 },
    { nodes: 2, replicas: 3, gpus: 8, tp: 4, size: 48, servers: 2 },
    { nodes: 2, gpus: 8, tp: 1, dp: 16, experts: true, size: 16, servers: 8 },
    { nodes: 2, replicas: 2, gpus: 8, tp: 8, dp: 2, experts: true, size: 32, servers: 1 },
    { nodes: 2, gpus: 8, tp: 1, disaggregated: true, size: 16, servers: 8 },
    { nodes: 2, replicas: 2, gpus: 8, tp: 4, disaggregated: true, size: 32, servers: 2 },
  ]

  const deploymentOf = ({ nodes, replicas = 1, gpus, disaggregated = false }: Row): string =>
    nodes === 0
      ? `[deployment]\nnum_infer_gpus = ${gpus}\n`
      : `[slurm]\n[deployment]\ntype = "multi_node"\nnum_train_nodes = 1\nnum_infer_nodes = ${nodes}\nnum_infer_replicas = ${replicas}\ngpus_per_node = ${gpus}\n${disaggregated ? '[inference.deployment]\ntype = "disaggregated"\n' : ''}`
  const fileOf = (row: Row): string => {
    const parallel = `[inference.parallel]\ntp = ${row.tp}\n${row.dp === undefined ? '' : `dp = ${row.dp}\n`}`
    const top = `[weight_broadcast]\ntype = "nccl"\n[trainer]\n[orchestrator]\n[inference]\n${row.experts === true ? 'enable_expert_parallel = true\n' : ''}`
    return `${top}${parallel}${deploymentOf(row)}`
  }

  it.each(table)('$nodes nodes, $gpus GPUs, tp $tp, dp $dp, experts $experts, disaggregated $disaggregated: $size ranks', async (row) => {
    const { resolved } = await folder.write({ 'rl.toml': fileOf(row) }).compose('rl', ['@', 'rl.toml'])
    expect(worldSizes(resolved.rl as unknown as RlConfiguration)).toMatchObject({ inference: row.size, inferenceGpus: row.size })
    for (const role of ['trainer', 'orchestrator'])
      expect(resolved[role]).toMatchObject({ weight_broadcast: { inference_world_size: row.size } })
    expect(resolved.inference).toMatchObject({ api_server_count: row.servers })
    // A written number may say the same, and nothing else.
    const said = (size: number) => folder.problems('rl', ['@', 'rl.toml', '--trainer.weight-broadcast.inference-world-size', String(size)])
    await expect(said(row.size)).rejects.toThrow('sound')
    expect(await said(row.size + 1)).toMatchObject([{ path: 'trainer.weight_broadcast.inference_world_size' }])
  })

  // known fault A5: dp = 1 with shared experts, and arguments that engines refuse.
  it.each(table)('known fault A5: $nodes nodes, tp $tp, dp $dp, experts $experts: arguments that an engine takes', async (row) => {
    const { resolved } = await folder.write({ 'rl.toml': fileOf(row) }).compose('rl', ['@', 'rl.toml'])
    const {
      parallel,
      data_parallel_size_local: local,
      api_server_count: servers,
    } = resolved.inference as never as {
      parallel: { dp: number; tp: number }
      data_parallel_size_local: number | null
      api_server_count: number
    }
    expect(local ?? parallel.dp).toBeLessThanOrEqual(parallel.dp)
    expect(servers).toBe(local ?? parallel.dp)
    // One engine is a dense one: nothing about data ranks is left to say.
    if (parallel.dp === 1) expect([local ?? 1, servers]).toEqual([1, 1])
  })
})

describe('known fault A7: a string changes its type or its text on the way through an override', () => {
  const strings = ['null', '"null"', 'true', '1e5', '[a]', 'a: b', '', '0x10', '1979-05-27', "it's", '\\n', '{x}', '@x', '--x', '-1']
  const args = (config: Readonly<Record<string, unknown>> | undefined) => valueAt(config, ['train', 'env', '0', 'args', 'x'])
  const template = (config: Readonly<Record<string, unknown>> | undefined) => valueAt(config, ['tokenizer', 'chat_template'])

  it.each(strings)('%j', async (text) => {
    const json = JSON.stringify(text)
    const value = { tokenizer: { chat_template: text }, train: { env: [{ id: 'reverse-text', args: { x: text } }] } }
    folder.write({
      'a.toml': `[tokenizer]\nchat_template = ${json}\n[[train.env]]\nid = "reverse-text"\n[train.env.args]\nx = ${json}\n`,
      'a.yaml': `tokenizer:\n  chat_template: ${json}\ntrain:\n  env:\n  - id: reverse-text\n    args:\n      x: ${json}\n`,
      'a.json': JSON.stringify(value),
      'included.toml': '"@" = "a.toml"\n',
      'tokenizer.toml': `chat_template = ${json}\n`,
    })
    const paths: Record<string, readonly string[]> = {
      toml: ['@', 'a.toml'],
      yaml: ['@', 'a.yaml'],
      json: ['@', 'a.json'],
      included: ['@', 'included.toml'],
      flags: [`--tokenizer.chat-template=${text}`, '--train.env', JSON.stringify(value.train.env)],
      tables: ['--tokenizer', '@', 'tokenizer.toml', '--train', JSON.stringify(value.train)],
      'item of a list': ['@', 'a.json', `--tokenizer.chat-template=${text}`, '--train.env.0.args', JSON.stringify({ x: text })],
    }
    for (const [way, argv] of Object.entries(paths)) {
      const composition = await folder.compose('orchestrator', argv)
      expect([way, template(composition.resolved.orchestrator), args(composition.resolved.orchestrator)]).toEqual([way, text, text])
      folder.write({ 'resolved.toml': resolvedToml(composition, 'orchestrator') })
      const again = await folder.compose('orchestrator', ['@', 'resolved.toml'])
      expect(again.resolved.orchestrator).toEqual(composition.resolved.orchestrator)
    }
  })

  it('and a list of URLs does not become single letters', async () => {
    const urls = ['http://a:8000/v1', 'http://b:8000/v1']
    for (const argv of [
      ['--student.client.base-url', ...urls],
      ['--student.client.base-url', JSON.stringify(urls)],
      ['--student.client.base-url', urls[0] ?? ''],
    ]) {
      const { resolved } = await folder.compose('orchestrator', argv)
      expect(valueAt(resolved.orchestrator, ['student', 'client', 'base_url'])).toEqual(
        argv.length === 3 ? urls : argv[1]?.startsWith('[') ? urls : [urls[0]],
      )
    }
  })
})

describe('known fault A10: a documented value is refused, or crashes on first use', () => {
  const cases = rootNames.flatMap((name) => {
    const choices = keysOf(name).flatMap(({ path, schema, needs }) => {
      const { core } = shapeOf(schema)
      const element = elementOf(core)
      const isList = element !== undefined
      const options = [element ?? core, ...(unionOptions(core) ?? [])].flatMap((one) => choicesOf(shapeOf(one).core) ?? [])
      const variants = (unionOptions(core) ?? []).flatMap((option) => {
        const discriminator = discriminatorOf(core)
        const key = discriminator === undefined ? undefined : objectKeys(shapeOf(option).core)?.[discriminator]
        return key === undefined
          ? []
          : (choicesOf(shapeOf(key).core) ?? []).map((value) => ({ path: `${path}.${discriminator}`, value, isList: false, needs }))
      })
      return [...options.map((value) => ({ path, value, isList, needs })), ...variants]
    })
    // A discriminator inside a variant repeats its variant.
    const unique = new Map(choices.map((choice) => [`${choice.path} ${choice.value}`, choice]))
    return [...unique.values()].map(({ path, value, isList, needs }) => [name, path, value, isList, needs] as const)
  })

  it('is looked for at every value of every choice', () => {
    expect(cases.length).toBeGreaterThan(120)
  })

  it.each(cases)('%s: %s = %s', async (name, path, value, isList, needs) => {
    const base = name === 'rl' ? ['@', 'rl.toml'] : []
    folder.write({ 'rl.toml': rl })
    const flag = `--${path}=${isList ? JSON.stringify([value]) : value}`
    try {
      const { resolved } = await folder.compose(name, [...base, ...needs, flag])
      expect(resolved[name]).toBeDefined()
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      const problems = error.problems.length > 0 ? error.problems : [error]
      // The value itself is accepted: other keys may have to go with it.
      for (const problem of problems) expect([problem.code, problem.message]).toEqual(acceptable(problem))
    }
  })

  function acceptable({ code, message }: TrilithonError): [string, string] {
    const isRule = code === 'CONFIG_VALUE_CONFLICT'
    const needsMore = code === 'CONFIG_VALUE_INVALID' && /is missing$/.test(message)
    return isRule || needsMore ? [code, message] : ['CONFIG_VALUE_CONFLICT', 'or a key that is missing']
  }
})
