import { TrilithonError } from '@trilithon/core'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { RootName } from '../src/compose/root-definitions.ts'
import { knownPlugins, schemaOfKnownClaim } from '../src/plugins/known-plugins.ts'
import { arbitraryOf } from './arbitrary-configuration.ts'
import { Folder } from './compose-in-folder.ts'

const folder = new Folder()
afterAll(() => folder.remove())

type Plain = Record<string, unknown>
const nested = (path: readonly string[], value: unknown): unknown => path.reduceRight<unknown>((below, key) => ({ [key]: below }), value)
const bases: Partial<Record<string, Plain>> = {
  rl: { trainer: {}, orchestrator: {}, inference: {} },
  // A teacher needs a mode that has one.
  'orchestrator.teacher': { training_mode: 'opd' },
}

/** What a composition with this table says is not available; undefined where a rule between keys forbids the table. */
async function unavailableWith(
  root: string,
  table: readonly string[],
  keys: Plain,
): Promise<readonly { path: string; owner: string }[] | undefined> {
  folder.write({ 'a.json': JSON.stringify({ ...(bases[`${root}.${table[0]}`] ?? bases[root]), ...(nested(table, keys) as Plain) }) })
  try {
    return (await folder.compose(root as RootName, ['@', 'a.json'])).unavailable
  } catch (error) {
    if (!TrilithonError.is(error)) throw error
    const problems = error.problems.length > 0 ? error.problems : [error]
    for (const { code, message } of problems) expect([code, message]).toEqual(['CONFIG_VALUE_CONFLICT', message])
    return undefined
  }
}

const untyped = knownPlugins().flatMap((plugin) =>
  plugin.claims
    .filter(({ type }) => type === undefined)
    .flatMap((claim) => Object.keys(claim.keys).map((key) => [`${claim.at}.${key}`, plugin.package, claim, key] as const)),
)
const typed = knownPlugins().flatMap((plugin) =>
  plugin.claims.flatMap((claim) => (claim.type === undefined ? [] : [[`${claim.at} = ${claim.type}`, plugin.package, claim] as const])),
)

// A key whose package is not here is accepted at its inactive value; at any other it is listed, and stops a start.
test.each(untyped)('%s of %s: accepted where it means "not used", listed at any other value', async (_, owner, claim, key) => {
  const [root = '', ...table] = claim.at.split('.')
  const inactive = claim.keys[key]?.inactive
  expect(inactive).toBeDefined()
  const idle = await unavailableWith(root, table, { [key]: inactive === null ? 'None' : inactive })
  expect(idle?.filter((one) => one.owner === owner)).toEqual([])

  const schema = schemaOfKnownClaim(claim).shape[key]
  expect(schema).toBeDefined()
  if (schema === undefined) return
  const values = fc
    .sample(arbitraryOf(schema), { numRuns: 40, seed: 1 })
    .filter((value) => JSON.stringify(value) !== JSON.stringify(inactive) && !JSON.stringify(value).includes('\\u'))
  let listed = 0
  for (const value of values.slice(0, 3)) {
    const found = await unavailableWith(root, table, { [key]: value === null ? 'None' : value })
    if (found === undefined) continue
    listed++
    expect(found).toContainEqual(expect.objectContaining({ path: [...table, key].join('.'), owner }))
  }
  // A few keys go with no other default: the corpus of bad configurations has their rules.
  if (listed === 0)
    expect(['ep', 'cp', 'dp_replicate', 'vlm', 'enable_eplb', 'ep_comm_backend', 'wandb', 'lora', 'save_adapter_separately']).toContain(key)
})

test.each(typed)('%s of %s: listed, unless another key says that it is not in use', async (_, owner, claim) => {
  const [root = '', ...table] = claim.at.split('.')
  const [keys] = fc.sample(arbitraryOf(schemaOfKnownClaim(claim)), { numRuns: 1, seed: 2 })
  const found = await unavailableWith(root, table, { type: claim.type, ...(keys as Plain) })
  if (found === undefined) return
  const own = found.filter((one) => one.owner === owner && one.path === [...table, 'type'].join('.'))
  expect(own).toHaveLength(claim.inactive_when === undefined ? 1 : 0)
})
