// @ts-check
/** A small tree that keeps every rule, into which a test plants one violation. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** @param {string} name @param {Record<string, unknown>} [more] */
export const manifest = (name, more = {}) =>
  JSON.stringify({
    name,
    version: '0.0.0',
    license: 'Apache-2.0',
    exports: { '.': './dist/index.js', './package.json': './package.json' },
    scripts: { build: 'tsc', typecheck: 'tsc', test: 'vitest' },
    ...more,
  })

const workspace = (/** @type {string[]} */ ...names) => Object.fromEntries(names.map((name) => [`@trilithon/${name}`, 'workspace:*']))

/** @type {Readonly<Record<string, string>>} */
export const cleanTree = {
  'package.json': manifest('trilithon', { scripts: {}, devDependencies: { vitest: '1.0.0' } }),
  'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
  'packages/core/package.json': manifest('@trilithon/core', { dependencies: { zod: '1.0.0' } }),
  'packages/core/src/index.ts': "export * from './errors.ts'\n",
  'packages/core/src/errors.ts':
    "import { z } from 'zod'\nexport const errorCodes = { A_BROKEN: 1, B_BROKEN: 2 }\nexport const text = z.string()\n",
  'packages/core/src/errors.test.ts':
    "import { readFileSync } from 'node:fs'\nimport { expect } from 'vitest'\nimport { text } from '@trilithon/core'\nexpect([readFileSync, text, 'A_BROKEN', 'B_BROKEN'])\n",
  'packages/builtin/package.json': manifest('@trilithon/builtin', {
    dependencies: workspace('core'),
    devDependencies: workspace('testing'),
  }),
  'packages/builtin/src/index.ts': "export * from '@trilithon/core'\n",
  'packages/builtin/src/builtin.test.ts': "import '@trilithon/testing'\nimport './index.ts'\n",
  'packages/testing/package.json': manifest('@trilithon/testing', { dependencies: workspace('core') }),
  'packages/testing/src/index.ts': "export * from '@trilithon/core'\n",
  'packages/trainer/package.json': manifest('@trilithon/trainer', { dependencies: workspace('core') }),
  'packages/trainer/src/index.ts': "export * from '@trilithon/core'\n",
  'packages/inference/package.json': manifest('@trilithon/inference', { dependencies: workspace('core') }),
  'packages/inference/src/index.ts': "export * from '@trilithon/core'\n",
  'packages/runtime/package.json': manifest('@trilithon/runtime', { dependencies: { ...workspace('core'), tsyringe: '1.0.0' } }),
  'packages/runtime/src/index.ts': "export * from './container.ts'\nexport * from '@trilithon/core'\n",
  'packages/runtime/src/container.ts': "export * from 'tsyringe'\n",
  'plugins/fast-router/package.json': manifest('@trilithon/fast-router', {
    peerDependencies: workspace('core', 'native'),
    devDependencies: workspace('core', 'testing'),
  }),
  'plugins/fast-router/src/index.ts': "export * from '@trilithon/core'\n",
  'plugins/fast-router/src/router.test.ts': "import '@trilithon/testing'\nimport './index.ts'\n",
  'examples/third-party/package.json': manifest('@acme/router', { dependencies: { '@trilithon/core': 'file:core.tgz' } }),
  'examples/third-party/index.mjs': "export * from '@trilithon/core'\n",
  'native/package.json': manifest('@trilithon/native', { dependencies: workspace('core') }),
  'native/src/index.ts': "export * from '@trilithon/core'\n",
  'native/binding/addon.cpp': '#include <napi.h>\n#include "ops/add/add.h"\n',
  'native/ops/add/add.h': '#include <cstdint>\n',
}

/**
 * Writes a tree into a temporary folder, hands it to `use`, removes it.
 * @template T @param {Readonly<Record<string, string>>} files by path @param {(root: string) => T} use @returns {T}
 */
export function withTree(files, use) {
  const root = mkdtempSync(join(tmpdir(), 'trilithon-tree-'))
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    return use(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
