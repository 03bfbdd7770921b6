import { PluginManifest } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { type PluginRequest, planPlugin } from './plan-plugin.ts'
import { templateSeams } from './seam-templates.ts'

const plan = (given: Partial<PluginRequest> = {}) =>
  planPlugin({ name: 'my-router', seam: 'router', place: 'workspace', exists: () => false, ...given })

const fileOf = ({ files }: ReturnType<typeof plan>, path: string) => files.find((file) => file.path === path)?.text ?? `no ${path}`

describe.each(templateSeams)('a plugin for %s', (seam) => {
  it.each(['workspace', 'alone'] as const)('has a manifest that names its seam: %s', (place) => {
    const planned = plan({ seam, place, name: 'my-plugin' })
    const manifest = PluginManifest.parse(JSON.parse(fileOf(planned, `${planned.folder}/package.json`)).trilithon)
    expect(manifest).toMatchObject({ seam, entry: './dist/index.js' })
  })

  it('leaves no word of a template unfilled', () => {
    for (const place of ['workspace', 'alone'] as const)
      for (const { path, text } of plan({ seam, place }).files) expect(`${path}: ${text}`).not.toMatch(/\{\{|undefined/)
  })
})

describe('names', () => {
  it('are those of this project inside of the workspace, with or without the scope', () => {
    for (const name of ['my-router', '@trilithon/my-router']) {
      const planned = plan({ name })
      expect(planned.files.map(({ path }) => path)).toEqual([
        'plugins/my-router/package.json',
        'plugins/my-router/tsconfig.json',
        'plugins/my-router/tsconfig.build.json',
        'plugins/my-router/README.md',
        'plugins/my-router/src/index.ts',
        'plugins/my-router/src/my-router.ts',
        'plugins/my-router/src/my-router.test.ts',
        '.changeset/my-router.md',
      ])
      expect(JSON.parse(fileOf(planned, 'plugins/my-router/package.json'))).toMatchObject({
        name: '@trilithon/my-router',
        trilithon: { type: 'my-router' },
        devDependencies: { '@trilithon/core': 'workspace:*' },
      })
    }
  })

  it('are as they were given outside of it, and so is the type', () => {
    const planned = plan({ name: '@acme/my-router', place: 'alone' })
    expect(planned.files.map(({ path }) => path)).toEqual([
      'my-router/package.json',
      'my-router/tsconfig.json',
      'my-router/tsconfig.build.json',
      'my-router/README.md',
      'my-router/src/index.ts',
      'my-router/src/my-router.ts',
      'my-router/src/my-router.test.ts',
    ])
    const manifest = JSON.parse(fileOf(planned, 'my-router/package.json'))
    expect(manifest).toMatchObject({ name: '@acme/my-router', trilithon: { type: '@acme/my-router' } })
    expect(JSON.stringify(manifest)).not.toContain('workspace:')
  })

  it.each([
    ['router', 'router', 'my-router.ts', 'MyRouter'],
    ['replay', 'replay', 'my-replay.ts', 'MyReplay'],
    ['router', 'index', 'my-index.ts', 'MyIndex'],
    ['kv-store', 'promise', 'my-promise.ts', 'MyPromise'],
    ['router', 'route-2-go', 'route-2-go.ts', 'Route2Go'],
  ])('for %s, %s hides nothing that its files use', (seam, name, file, className) => {
    expect(fileOf(plan({ seam, name }), `plugins/${name}/src/${file}`)).toContain(`export class ${className} implements`)
  })

  it.each([
    '',
    'My-Router',
    'my_router',
    'my--router',
    '-router',
    'router-',
    '2-router',
    '../router',
    'a/b',
    '@acme',
    '@acme/',
    '@acme/a/b',
    'a'.repeat(300),
  ])('that are none are refused: "%s"', (name) => {
    expect(() => plan({ name, place: 'alone' })).toThrow(expect.objectContaining({ code: 'USAGE_INVALID', path: name }))
  })

  it('of another scope are refused inside of the workspace', () => {
    expect(() => plan({ name: '@acme/my-router' })).toThrow(
      expect.objectContaining({ code: 'USAGE_INVALID', hint: expect.stringContaining('my-router') }),
    )
  })
})

it.each([
  ['workspace', 'plugins/my-router'],
  ['workspace', 'packages/my-router'],
  ['alone', 'my-router'],
] as const)('a place that is taken is refused: %s, %s', (place, taken) => {
  const request = { place, exists: (path: string) => path === taken }
  expect(() => plan(request)).toThrow(expect.objectContaining({ code: 'USAGE_INVALID', path: taken }))
})

it('the native package keeps its name', () => {
  expect(() => plan({ name: 'native', exists: (path) => path === 'native' })).toThrow(expect.objectContaining({ path: 'native' }))
})

it('an unknown seam is refused with the known ones', () => {
  expect(() => plan({ seam: 'routre' })).toThrow(
    expect.objectContaining({ code: 'USAGE_INVALID', hint: 'Seams: parallelism, precision, kv-store, router, replay.' }),
  )
})
