import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { PluginNames, PluginPlace } from './plugin-names.ts'
import type { SeamTemplate } from './seam-templates.ts'

const entry = './dist/index.js'

/** Versions that a package outside of the workspace asks for. @trilithon/testing names the vitest that it runs under. */
export const outsideTools = { typescript: '^7.0.2', vitest: '^4.1.0' } as const

/** `package.json` and the two `tsconfig` files of a new plugin, as data. */
export function packageFiles(names: PluginNames, template: SeamTemplate, place: PluginPlace): Readonly<Record<string, object>> {
  return place === 'workspace'
    ? {
        'package.json': manifest(names, template, workspaceFields()),
        'tsconfig.json': { extends: '../../tsconfig.base.json', compilerOptions: { noEmit: true }, include: ['src', 'test'] },
        'tsconfig.build.json': {
          extends: '../../tsconfig.base.json',
          compilerOptions: { rootDir: 'src', outDir: 'dist', customConditions: [] },
          include: ['src'],
          exclude: ['src/**/*.test.ts', 'src/**/__fixtures__/**'],
        },
      }
    : {
        'package.json': manifest(names, template, outsideFields()),
        'tsconfig.json': {
          compilerOptions: {
            target: 'es2022',
            lib: ['es2023'],
            module: 'nodenext',
            strict: true,
            noUncheckedIndexedAccess: true,
            exactOptionalPropertyTypes: true,
            verbatimModuleSyntax: true,
            erasableSyntaxOnly: true,
            rewriteRelativeImportExtensions: true,
            skipLibCheck: true,
            noEmit: true,
          },
          include: ['src'],
        },
        'tsconfig.build.json': {
          extends: './tsconfig.json',
          compilerOptions: { noEmit: false, declaration: true, rootDir: 'src', outDir: 'dist' },
          exclude: ['src/**/*.test.ts'],
        },
      }
}

/** The house's form: versions of the workspace, tests on sources. */
function workspaceFields() {
  const { zod } = coreFacts()
  return {
    version: '0.0.0',
    source: { 'trilithon-src': './src/index.ts' },
    files: ['dist', 'src', '!src/**/*.test.ts'],
    scripts: {
      build: 'tsc -p tsconfig.build.json',
      typecheck: 'tsc -p tsconfig.json',
      test: 'vitest run --config ../../vitest.shared.ts --root .',
    },
    dependencies: { '@trilithon/core': 'workspace:*', zod },
    devDependencies: { '@trilithon/testing': 'workspace:*' },
  }
}

/** The form of a package that stands alone: core and zod are the installation's own, so that there is one copy of each. */
function outsideFields() {
  const { version, zod } = coreFacts()
  const core = version.startsWith('0.') ? '0.x' : `^${version.split('.')[0]}`
  const peers = { '@trilithon/core': core, zod: `^${zod}` }
  return {
    version: '0.1.0',
    source: {},
    files: ['dist'],
    scripts: { build: 'tsc -p tsconfig.build.json', test: 'npm run build && vitest run', prepack: 'npm run build' },
    peerDependencies: peers,
    devDependencies: { '@trilithon/core': core, '@trilithon/testing': core, ...outsideTools, zod: `^${zod}` },
  }
}

function coreFacts(): { version: string; zod: string } {
  const path = createRequire(import.meta.url).resolve('@trilithon/core/package.json')
  const { version, dependencies } = JSON.parse(readFileSync(path, 'utf8'))
  return { version, zod: dependencies.zod }
}

function manifest(
  { packageName, ...names }: PluginNames,
  { seam, title, claim }: SeamTemplate,
  { version, source, files, ...fields }: { version: string; source: object; files: readonly string[]; scripts: object },
): object {
  const own = claim({ packageName, ...names })
  return {
    name: packageName,
    version,
    description: `Fills the seam ${title} of Trilithon`,
    license: 'Apache-2.0',
    type: 'module',
    engines: { node: '>=20.19' },
    exports: { '.': { ...source, types: './dist/index.d.ts', default: entry }, './package.json': './package.json' },
    files,
    trilithon: {
      seam: seam.id,
      ...(own.type === undefined ? {} : { type: own.type }),
      runs_in: [...seam.runsIn],
      claims: [own],
      entry,
    },
    ...fields,
  }
}
