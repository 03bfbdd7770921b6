import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { PluginNames, PluginPlace } from './plugin-names.ts'
import type { SeamTemplate } from './seam-templates.ts'

const entry = './dist/index.js'

/** Versions that a package outside of the workspace asks for. @trilithon/testing names the vitest that it runs under. */
export const outsideTools = { '@types/node': '^20.19.43', typescript: '^7.0.2', vitest: '^4.1.0' } as const

/** `package.json` of a new plugin, as data. Core and zod are peers: an installation has one copy of each. */
export function pluginPackage(names: PluginNames, { seam, title, claim }: SeamTemplate, place: PluginPlace): object {
  const { version, source, files, ...fields } = place === 'workspace' ? workspaceFields() : outsideFields()
  const own = claim(names)
  return {
    name: names.packageName,
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

/** The house's form: versions of the workspace, tests on sources. */
function workspaceFields() {
  const { zod } = coreFacts()
  return {
    version: '0.0.0',
    source: { 'trilithon-src': './src/index.ts' },
    files: ['dist', 'src', '!src/**/*.test.ts', '!src/**/__fixtures__'],
    scripts: {
      build: 'tsc -p tsconfig.build.json',
      typecheck: 'tsc -p tsconfig.json',
      test: 'vitest run --config ../../vitest.shared.ts --root .',
    },
    peerDependencies: { '@trilithon/core': 'workspace:*', zod: `^${zod}` },
    devDependencies: { '@trilithon/core': 'workspace:*', '@trilithon/testing': 'workspace:*', zod },
  }
}

/** The form of a package that stands alone. */
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
