import type { ConfigurationRoot } from '@trilithon/core'
import { envServerRoot } from '@trilithon/environments/configuration'
import { inferenceRoot } from '@trilithon/inference/configuration'
import { orchestratorRoot } from '@trilithon/orchestrator/configuration'
import { sftRoot, trainerRoot } from '@trilithon/trainer/configuration'
import { expect, test } from 'vitest'
import { shapeOf } from '../config/shape.ts'
import { ourKeys, surface } from './__fixtures__/surface.ts'
import { claimedKeys, rootKeys } from './__fixtures__/walk-keys.ts'
import { rlRoot } from './rl-root.ts'

const roots: readonly ConfigurationRoot[] = [rlRoot, trainerRoot, orchestratorRoot, inferenceRoot, sftRoot, envServerRoot] as never

const allKeys = () => [...roots.flatMap(rootKeys), ...claimedKeys()]

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
