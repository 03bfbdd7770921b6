import type { Claim, ConfigurationRoot } from '@trilithon/core'
import { envServerRoot } from '@trilithon/environments/configuration'
import { inferenceRoot } from '@trilithon/inference/configuration'
import { orchestratorRoot } from '@trilithon/orchestrator/configuration'
import { sftRoot, trainerRoot } from '@trilithon/trainer/configuration'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { discriminatorOf, elementOf, objectKeys, shapeOf, unionOptions } from '../config/shape.ts'
import { builtInPlugins } from '../plugins/built-in.ts'
import { ourKeys, surface } from './__fixtures__/surface.ts'
import { knownPluginSources } from './known/known-plugin-sources.ts'
import { rlRoot } from './rl-root.ts'

const roots: readonly ConfigurationRoot[] = [rlRoot, trainerRoot, orchestratorRoot, inferenceRoot, sftRoot, envServerRoot] as never

/** Every key below a schema, as `trainer.optim[sgd].nesterov` and `orchestrator.train.env.*.id`; without the discriminators of unions. */
function keysOf(schema: z.core.$ZodType, path: string): { path: string; schema: z.core.$ZodType }[] {
  const { core } = shapeOf(schema)
  const element = elementOf(core)
  if (element !== undefined) return keysOf(element, `${path}.*`)
  const discriminator = discriminatorOf(core)
  const options = unionOptions(core)
  if (options !== undefined)
    return options.flatMap((option) => {
      if (discriminator === undefined) return keysOf(option, path)
      const name = choiceOf(option, discriminator)
      return keysOf(option, `${path}[${name}]`).filter((key) => key.path !== `${path}[${name}].${discriminator}`)
    })
  return Object.entries(objectKeys(core) ?? {}).flatMap(([key, below]) => {
    const place = `${path}.${key}`
    return [{ path: place, schema: below }, ...keysOf(below, place)]
  })
}

function choiceOf(option: z.core.$ZodType, discriminator: string): string {
  const key = objectKeys(shapeOf(option).core)?.[discriminator]
  return String((key?._zod.def as { values?: unknown[] } | undefined)?.values?.[0])
}

function allKeys(): { path: string; schema: z.core.$ZodType }[] {
  const own = builtInPlugins.flatMap((plugin) => plugin.claims as readonly Claim[])
  const claims: readonly Claim[] = [...own, ...knownPluginSources.flatMap((plugin) => plugin.claims)]
  return [
    ...roots.flatMap((root) => keysOf(root.schema, root.name)),
    ...claims.flatMap(({ at, type, keys }) => keysOf(keys, type === undefined ? at : `${at}[${type}]`)),
  ]
}

test('every key of the surface has exactly one owner, and no key has none', () => {
  const found = allKeys().map(({ path }) => path)
  const twice = found.filter((path, index) => found.indexOf(path) !== index)
  expect(twice).toEqual([])
  const wanted = new Set([...surface, ...ourKeys])
  expect([...wanted].filter((path) => !found.includes(path))).toEqual([])
  expect(found.filter((path) => !wanted.has(path))).toEqual([])
})

test('every key is described', () => {
  const bare = allKeys().filter(({ schema }) => !/\S/.test(String(shapeOf(schema).meta.description ?? '')))
  expect(bare.map(({ path }) => path)).toEqual([])
})

test('no key promises to be both missing here and meant for others', () => {
  const both = allKeys().filter(({ schema }) => {
    const { meta } = shapeOf(schema)
    return meta.unavailable !== undefined && meta.externalOnly !== undefined
  })
  expect(both.map(({ path }) => path)).toEqual([])
})
