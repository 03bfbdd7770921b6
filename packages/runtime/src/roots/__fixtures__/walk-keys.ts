import type { Claim, ConfigurationRoot, KeyMeta } from '@trilithon/core'
import type { z } from 'zod'
import { choicesOf, discriminatorOf, elementOf, objectKeys, shapeOf, unionOptions } from '../../config/shape.ts'
import { builtInPlugins } from '../../plugins/built-in.ts'
import { knownPluginSources } from '../known/known-plugin-sources.ts'

export interface WalkedKey {
  /** `trainer.optim[sgd].nesterov`, `orchestrator.train.env.*.id`; without the discriminators of unions. */
  readonly path: string
  readonly schema: z.core.$ZodType
  /** Holds nothing but its own keys: those are walked too. */
  readonly isTable: boolean
  /** Why the key does nothing here, from its own metadata or from what it lies in. */
  readonly unavailable: string | undefined
  readonly externalOnly: string | undefined
}

type Inherited = Pick<KeyMeta, 'unavailable' | 'externalOnly'>

/** Every key below a schema. */
export function walkKeys(schema: z.core.$ZodType, path: string, inherited: Inherited = {}): WalkedKey[] {
  const { core, meta } = shapeOf(schema)
  const { unavailable = inherited.unavailable, externalOnly = inherited.externalOnly } = meta as KeyMeta
  const here: Inherited = { ...(unavailable === undefined ? {} : { unavailable }), ...(externalOnly === undefined ? {} : { externalOnly }) }
  const element = elementOf(core)
  if (element !== undefined) return walkKeys(element, `${path}.*`, here)
  const discriminator = discriminatorOf(core)
  const options = unionOptions(core)
  if (options !== undefined)
    return options.flatMap((option) => {
      if (discriminator === undefined) return walkKeys(option, path, here)
      const variant = `${path}[${choiceOf(option, discriminator)}]`
      return walkKeys(option, variant, here).filter((key) => key.path !== `${variant}.${discriminator}`)
    })
  return Object.entries(objectKeys(core) ?? {}).flatMap(([key, below]) => {
    const place = `${path}.${key}`
    const shape = shapeOf(below)
    const own = { ...here, ...(shape.meta as KeyMeta) }
    const inner = walkKeys(below, place, here)
    return [{ path: place, schema: below, isTable: inner.length > 0, unavailable: own.unavailable, externalOnly: own.externalOnly }, ...inner]
  })
}

function choiceOf(option: z.core.$ZodType, discriminator: string): string {
  const key = objectKeys(shapeOf(option).core)?.[discriminator]
  return String(key === undefined ? undefined : choicesOf(shapeOf(key).core)?.[0])
}

/** Keys that built-in plugins and known packages claim. */
export function claimedKeys(): WalkedKey[] {
  const own = builtInPlugins.flatMap((plugin) => plugin.claims as readonly Claim[])
  const claims: readonly Claim[] = [...own, ...knownPluginSources.flatMap((plugin) => plugin.claims)]
  return claims.flatMap(({ at, type, keys }) => walkKeys(keys, type === undefined ? at : `${at}[${type}]`))
}

export const rootKeys = (root: ConfigurationRoot): WalkedKey[] => walkKeys(root.schema, root.name)
