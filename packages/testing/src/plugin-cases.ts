import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { manifestOf } from '@trilithon/core'
import { z } from 'zod'
import type { PluginContext } from './plugin-context.ts'
import { probeImport } from './probe-import.ts'
import { caseTable } from './suite.ts'

/** JSON Schema of a claim, of which only this is read. */
interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly additionalProperties?: unknown
  readonly description?: string
  readonly items?: SchemaNode | readonly SchemaNode[]
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
  readonly allOf?: readonly SchemaNode[]
}

/** Every table of the claims with its dotted path, those inside other tables, lists and unions too. */
function tablesOf({ claims }: PluginContext): readonly { readonly path: string; readonly node: SchemaNode }[] {
  const tables: { path: string; node: SchemaNode }[] = []
  const visit = (path: string, node: SchemaNode): void => {
    if (node.properties !== undefined) tables.push({ path, node })
    for (const [key, child] of Object.entries(node.properties ?? {})) visit(`${path}.${key}`, child)
    if (typeof node.additionalProperties === 'object' && node.additionalProperties !== null) visit(`${path}.*`, node.additionalProperties)
    for (const child of [node.items ?? []].flat()) visit(`${path}[]`, child)
    for (const child of [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])]) visit(path, child)
  }
  for (const { at, keys } of claims) visit(at, z.toJSONSchema(keys, { io: 'input', unrepresentable: 'any' }) as SchemaNode)
  return tables
}

/** Fails with all that is wrong in one message: an author repairs a list, not one thing after another. */
function assertNone(problems: readonly string[]): void {
  assert.ok(problems.length === 0, problems.join('\n'))
}

/** One of several plugins of a package is named after it: `@acme/routers/sticky`. */
const isPart = (name: string, packageName: string): boolean => name.startsWith(`${packageName}/`)

/** What every plugin holds, whatever seam it fills. */
export const pluginCases = caseTable<PluginContext>()([
  {
    name: 'its name is that of its package',
    run({ definition, packageName }) {
      assert.notEqual(packageName, '', 'package.json has a name')
      assert.ok(
        definition.name === packageName ||
          (isPart(definition.name, packageName) && /^[a-z0-9-]+$/.test(definition.name.slice(packageName.length + 1))),
        `name is "${definition.name}"; it should be "${packageName}", or "${packageName}/<part>" for one of several`,
      )
    },
  },
  {
    name: 'the package carries its manifest',
    run({ definition, packageName, manifestField, publishedEntry }) {
      if (isPart(definition.name, packageName)) {
        assert.equal(
          manifestField,
          undefined,
          'a manifest describes one plugin, and this package has several: remove "trilithon" from package.json',
        )
        return
      }
      const expected = manifestOf(definition, publishedEntry)
      assert.ok(
        isDeepStrictEqual(manifestField, expected),
        `"trilithon" in package.json should be:\n${JSON.stringify(expected, null, 2)}\nand is:\n${JSON.stringify(manifestField, null, 2)}`,
      )
    },
  },
  {
    name: 'it runs in roles of its seam',
    run({ definition: { runsIn = [], fills } }) {
      assertNone(
        runsIn.filter((role) => !fills.runsIn.includes(role)).map((role) => `runsIn has "${role}", where ${fills.id} is not called`),
      )
    },
  },
  {
    name: 'its claims name each table once, and one type at most',
    run({ claims }) {
      const paths = claims.map(({ at }) => at)
      const types = new Set(claims.flatMap(({ type }) => type ?? []))
      assertNone([
        ...paths.filter((at, index) => paths.indexOf(at) !== index).map((at) => `${at} is claimed twice: join the keys of the two claims`),
        ...(types.size > 1 ? [`one plugin is chosen by one type, not by ${[...types].join(' and ')}`] : []),
      ])
    },
  },
  {
    name: 'every claimed table is strict',
    run(context) {
      // `false` refuses unknown keys; a schema is the open table (z.record) that passes through what an external system knows.
      const open = tablesOf(context).filter(({ node }) => node.additionalProperties !== false)
      assertNone(open.map(({ path }) => `${path} swallows unknown keys: make it a z.strictObject`))
    },
  },
  {
    name: 'every claimed key is described',
    run(context) {
      const keys = tablesOf(context).flatMap(({ path, node }) =>
        Object.entries(node.properties ?? {}).map(([key, child]) => ({
          path: `${path}.${key}`,
          description: child.description?.trim() ?? '',
        })),
      )
      assertNone(
        keys.filter(({ description }) => description === '').map(({ path }) => `${path} has no description: add .describe(…) last`),
      )
    },
  },
  {
    name: 'inactive values are values of their keys',
    run({ claims }) {
      assertNone(
        claims.flatMap(({ at, keys, inactive = {} }) =>
          Object.entries(inactive).flatMap(([key, value]) => {
            const schema = keys.shape[key]
            if (schema === undefined) return [`inactive names ${at}.${key}, which is not claimed`]
            const result = z.safeParse(schema, value)
            return result.success
              ? []
              : [`the inactive value ${JSON.stringify(value)} of ${at}.${key} is not valid: ${z.prettifyError(result.error)}`]
          }),
        ),
      )
    },
  },
  {
    name: 'its capabilities are data',
    run({ definition: { capabilities = {} } }) {
      assert.deepEqual(JSON.parse(JSON.stringify(capabilities)), capabilities)
    },
  },
  {
    name: 'its kernels are names, each once',
    run({ definition: { kernels = [] } }) {
      assertNone([
        ...kernels
          .filter((kernel) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(kernel))
          .map((kernel) => `"${kernel}" is no kernel: names are kebab-case`),
        ...kernels.filter((kernel, index) => kernels.indexOf(kernel) !== index).map((kernel) => `${kernel} is named twice`),
      ])
    },
  },
  {
    name: 'importing it does nothing',
    async run({ definition, packageName, entry, publishedEntry }) {
      const { effects, defaultName } = await probeImport(entry)
      assertNone(effects.map((effect) => `the import of ${entry} ${effect}`))
      if (!isPart(definition.name, packageName))
        assert.equal(defaultName, definition.name, `the default export of ${publishedEntry} is the definition`)
    },
  },
  {
    name: 'its check finds nothing wrong with the example configuration, twice',
    run({ checkProblems }) {
      assert.deepEqual(checkProblems(), [])
      assert.deepEqual(checkProblems(), [])
    },
  },
  {
    name: 'it is created twice, and each is disposed twice',
    async run({ create }) {
      const [first, second] = [await create(), await create()]
      await first.dispose()
      await first.dispose()
      await second.dispose()
      await second.dispose()
    },
  },
])
