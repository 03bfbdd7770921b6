// @ts-check
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkFloors, rules } from '../check-floors.mjs'
import { formatProblem } from '../lib/problems.mjs'
import { projectRoot } from '../lib/workspace.mjs'
import { cleanTree, manifest, withTree } from './mini-tree.mjs'

/**
 * One planted violation: `files` replaces or adds to the clean tree, and exactly this is reported.
 * @type {{ rule: string, title: string, files: Record<string, string>, at: string, says: RegExp }[]}
 */
const planted = [
  {
    rule: 'floor-unknown',
    title: 'a package without a floor',
    files: { 'packages/attic/package.json': manifest('@trilithon/attic'), 'packages/attic/src/index.ts': 'export {}\n' },
    at: 'packages/attic/package.json',
    says: /"attic" has no floor.*floors\.mjs/,
  },
  {
    rule: 'floor-up',
    title: 'an import upwards',
    files: {
      'packages/builtin/package.json': manifest('@trilithon/builtin', {
        dependencies: { '@trilithon/core': '', '@trilithon/runtime': '' },
        devDependencies: { '@trilithon/testing': '' },
      }),
      'packages/builtin/src/index.ts': "export * from '@trilithon/core'\nexport * from '@trilithon/runtime'\n",
    },
    at: 'packages/builtin/src/index.ts:2',
    says: /packages\/builtin imports packages\/runtime, which stands above it/,
  },
  {
    rule: 'floor-up',
    title: 'a test below testing that uses testing',
    files: {
      'native/package.json': manifest('@trilithon/native', {
        dependencies: { '@trilithon/core': '' },
        devDependencies: { '@trilithon/testing': '' },
      }),
      'native/src/add.test.ts': "import '@trilithon/testing'\n",
    },
    at: 'native/src/add.test.ts:1',
    says: /native imports packages\/testing, which stands above it/,
  },
  {
    rule: 'floor-same',
    title: 'shipped code that uses testing',
    files: {
      'packages/builtin/package.json': manifest('@trilithon/builtin', {
        dependencies: { '@trilithon/core': '', '@trilithon/testing': '' },
      }),
      'packages/builtin/src/fake.ts': "export * from '@trilithon/testing'\n",
    },
    at: 'packages/builtin/src/fake.ts:1',
    says: /stands on the same floor\. Move what both need to a lower floor/,
  },
  {
    rule: 'roles',
    title: 'a role that imports a role, as a type only',
    files: {
      'packages/trainer/package.json': manifest('@trilithon/trainer', {
        dependencies: { '@trilithon/core': '', '@trilithon/inference': '' },
      }),
      'packages/trainer/src/loop.ts': "export type { Engine } from '@trilithon/inference'\n",
    },
    at: 'packages/trainer/src/loop.ts:1',
    says: /one role imports another.*transport/,
  },
  {
    rule: 'plugin-imports',
    title: 'a plugin that imports a built-in filling',
    files: {
      'plugins/fast-router/package.json': manifest('@trilithon/fast-router', {
        dependencies: { '@trilithon/builtin': '' },
        devDependencies: { '@trilithon/core': '', '@trilithon/testing': '' },
        peerDependencies: { '@trilithon/core': '' },
      }),
      'plugins/fast-router/src/sticky.ts': "export const sticky = import('@trilithon/builtin')\n",
    },
    at: 'plugins/fast-router/src/sticky.ts:1',
    says: /Use core, native, tensor; what other seams give/,
  },
  {
    rule: 'plugin-imported',
    title: 'a package that imports a plugin',
    files: {
      'packages/runtime/package.json': manifest('@trilithon/runtime', {
        dependencies: { '@trilithon/core': '', '@trilithon/fast-router': '', tsyringe: '' },
      }),
      'packages/runtime/src/default.ts': "export * from '@trilithon/fast-router'\n",
    },
    at: 'packages/runtime/src/default.ts:1',
    says: /a plugin\. Let the configuration choose it/,
  },
  {
    rule: 'entrance',
    title: "an import of another package's sources",
    files: { 'packages/trainer/src/deep.ts': "export * from '@trilithon/core/src/errors.ts'\n" },
    at: 'packages/trainer/src/deep.ts:1',
    says: /which @trilithon\/core does not export\. Import from "@trilithon\/core"/,
  },
  {
    rule: 'entrance',
    title: 'a manifest that exports its sources',
    files: {
      'packages/trainer/package.json': manifest('@trilithon/trainer', {
        dependencies: { '@trilithon/core': '' },
        exports: { '.': './dist/index.js', './src/*': './src/*' },
      }),
    },
    at: 'packages/trainer/package.json',
    says: /exports "\.\/src\/\*".*src\/index\.ts/,
  },
  {
    rule: 'outside',
    title: 'a relative import into another package',
    files: { 'packages/trainer/src/deep.test.ts': "import '../../core/src/errors.ts'\n" },
    at: 'packages/trainer/src/deep.test.ts:1',
    says: /a file outside packages\/trainer\. Import a package by its name/,
  },
  {
    rule: 'cycle',
    title: 'two files that import each other',
    files: {
      'packages/trainer/src/a.ts': "import './b.ts'\n",
      'packages/trainer/src/b.ts': "\nimport type { A } from './a.js'\nexport type B = A\n",
    },
    at: 'packages/trainer/src/a.ts:1',
    says: /src\/a\.ts → src\/b\.ts → src\/a\.ts\. Move what both need/,
  },
  {
    rule: 'container',
    title: 'a second door to the container library',
    files: { 'packages/runtime/src/lifecycle.ts': "import { container } from 'tsyringe'\nexport { container }\n" },
    at: 'packages/runtime/src/lifecycle.ts:1',
    says: /Ask packages\/runtime\/src\/container\.ts/,
  },
  {
    rule: 'core-node',
    title: 'core with a module of Node',
    files: { 'packages/core/src/files.ts': "export { readFileSync } from 'node:fs'\n" },
    at: 'packages/core/src/files.ts:1',
    says: /imports node:fs\. Move what needs Node to runtime/,
  },
  {
    rule: 'core-dependency',
    title: 'core with a second library, although it is declared',
    files: {
      'packages/core/package.json': manifest('@trilithon/core', { dependencies: { zod: '', pino: '' } }),
      'packages/core/src/log.ts': "export type Log = import('pino').Logger\n",
    },
    at: 'packages/core/src/log.ts:1',
    says: /imports pino\. Core may use zod only/,
  },
  {
    rule: 'decorator',
    title: 'a decorator',
    files: { 'packages/trainer/src/step.ts': 'const injectable = () => undefined\n@injectable()\nexport class Step {}\n' },
    at: 'packages/trainer/src/step.ts:2',
    says: /Call a function instead/,
  },
  {
    rule: 'enum',
    title: 'an enum',
    files: { 'packages/trainer/src/step.ts': 'export const enum Step {\n  One,\n}\n' },
    at: 'packages/trainer/src/step.ts:1',
    says: /An enum: Step\. Write a const array/,
  },
  {
    rule: 'parameter-property',
    title: 'a parameter property',
    files: { 'packages/trainer/src/step.ts': 'export class Step {\n  constructor(readonly count: number) {}\n}\n' },
    at: 'packages/trainer/src/step.ts:2',
    says: /Declare the field/,
  },
  {
    rule: 'syntax',
    title: 'a file that does not parse',
    files: { 'packages/trainer/src/step.ts': 'export class {\n' },
    at: 'packages/trainer/src/step.ts',
    says: /does not parse: .*Mend the syntax/,
  },
  {
    rule: 'undeclared',
    title: 'shipped code with a library that only the root declares',
    files: { 'packages/trainer/src/step.ts': "export * from 'vitest'\n" },
    at: 'packages/trainer/src/step.ts:1',
    says: /imports vitest, which packages\/trainer\/package\.json does not declare under dependencies.*pnpm add vitest/,
  },
  {
    rule: 'undeclared',
    title: 'a test with a package of ours that nobody declares',
    files: { 'packages/trainer/src/step.test.ts': "import '@trilithon/builtin'\n" },
    at: 'packages/trainer/src/step.test.ts:1',
    says: /pnpm add --workspace --save-dev @trilithon\/builtin/,
  },
  {
    rule: 'unused',
    title: 'a declared package of ours that no file uses',
    files: {
      'packages/trainer/package.json': manifest('@trilithon/trainer', {
        dependencies: { '@trilithon/core': '', '@trilithon/builtin': '' },
      }),
    },
    at: 'packages/trainer/package.json',
    says: /declares @trilithon\/builtin, which no file.*pnpm remove @trilithon\/builtin/,
  },
  {
    rule: 'name',
    title: 'a package that is not named as its folder',
    files: { 'packages/planner/package.json': manifest('@trilithon/plan') },
    at: 'packages/planner/package.json',
    says: /Name the package @trilithon\/planner, or rename its folder/,
  },
  {
    rule: 'scripts',
    title: 'a package that nobody tests',
    files: {
      'packages/trainer/package.json': manifest('@trilithon/trainer', {
        dependencies: { '@trilithon/core': '' },
        scripts: { build: 'tsc', typecheck: 'tsc' },
      }),
    },
    at: 'packages/trainer/package.json',
    says: /no script "test"/,
  },
  {
    rule: 'license',
    title: 'a package of another license',
    files: { 'examples/third-party/package.json': manifest('@acme/router', { license: 'MIT', dependencies: { '@trilithon/core': '' } }) },
    at: 'examples/third-party/package.json',
    says: /The license is MIT\. Write "license": "Apache-2\.0"/,
  },
  {
    rule: 'lock-host',
    title: 'a lock file with an address',
    files: { 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n\n  resolution: {tarball: https://mirror.example/zod.tgz}\n" },
    at: 'pnpm-lock.yaml:3',
    says: /names a host.*default registry/,
  },
  {
    rule: 'native-binding',
    title: 'an op that includes N-API',
    files: { 'native/ops/add/add.ref.cpp': '#include "add.h"\n  # include <napi.h>\n' },
    at: 'native/ops/add/add.ref.cpp:2',
    says: /includes napi\.h\. Take a TensorView/,
  },
]

test('a tree that keeps every rule passes', () => {
  expect(withTree(cleanTree, checkFloors)).toEqual([])
})

test('every rule has a planted violation', () => {
  expect([...new Set(planted.map(({ rule }) => rule))].sort()).toEqual(Object.keys(rules).sort())
})

test.for(planted)('$rule: $title', ({ rule, files, at, says }) => {
  const problems = withTree({ ...cleanTree, ...files }, checkFloors)
  expect(problems.map(formatProblem)).toEqual([expect.stringMatching(says)])
  expect(problems.map(formatProblem)[0]).toContain(`${at} [${rule}] `)
})

test.for([
  {
    title: 'a name only known at run time',
    path: 'packages/runtime/src/load.ts',
    text: 'export const load = (name: string) => import(name)\n',
  },
  {
    title: 'a package named by a list instead of an import',
    path: 'packages/trainer/src/names.ts',
    text: "export const names = ['@trilithon/core']\n",
  },
  { title: 'a fixture that is wrong on purpose', path: 'packages/trainer/src/__fixtures__/broken.ts', text: "import '@trilithon/cli\n" },
  { title: 'the word enum in a string', path: 'packages/trainer/src/text.ts', text: "export const text = '@decorator enum A {}'\n" },
  {
    title: 'a test that imports a file of the root',
    path: 'packages/trainer/vitest.config.ts',
    text: "export { default } from '../../vitest.shared.ts'\n",
  },
])('allowed: $title', ({ path, text }) => {
  expect(withTree({ ...cleanTree, [path]: text }, checkFloors)).toEqual([])
})

test('the command reports on standard error and fails', () => {
  const violated = { ...cleanTree, 'packages/trainer/src/step.ts': 'export enum Step {}\n' }
  const run = withTree(violated, (root) => {
    cpSync(join(projectRoot, 'tools'), join(root, 'tools'), { recursive: true })
    mkdirSync(join(root, 'node_modules'))
    symlinkSync(join(projectRoot, 'node_modules', 'vite'), join(root, 'node_modules', 'vite'))
    return spawnSync(process.execPath, [join(root, 'tools', 'check-floors.mjs')], { encoding: 'utf8' })
  })
  expect(run).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/^packages\/trainer\/src\/step\.ts:1 \[enum\] .*\n$/) })
})
