import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { environmentFileProblem } from './environment-file.ts'
import { environmentFileName, environmentName, unsafeEnvironmentName, withoutVersion } from './environment-name.ts'

it('a version ends an id, and is no part of a path', () => {
  expect(['a', 'a@1', '@s/a', '@s/a@1', './a@b.mjs'].map(withoutVersion)).toEqual(['a', 'a', '@s/a', '@s/a', './a@b.mjs'])
})

it.each([
  ['reverse-text', 'reverse-text', 'reverse-text'],
  ['org/env@1.0', 'org/env', 'org--env'],
  ['@acme/env@2.1.0', '@acme/env', '@acme--env'],
  ['./ok.mjs', 'ok', 'ok'],
  ['../../deep/ok.test.mjs', 'ok.test', 'ok.test'],
  ['ok.js', 'ok', 'ok'],
  ['/srv/environments/halves/', 'halves', 'halves'],
])('%s is called %s, and %s in files', (id, name, file) => {
  expect(environmentName({ id })).toBe(name)
  expect(environmentName({ id, name: 'given' })).toBe('given')
  expect(environmentFileName(name)).toBe(file)
  expect(unsafeEnvironmentName({ id })).toBeUndefined()
})

it.each([
  ['../x', /slash/],
  ['a/b', /slash/],
  ['..', /dot/],
  ['.hidden', /dot/],
  ['a\nb', /control/],
  ['a\\b', /backslash/],
  ['x'.repeat(201), /longer/],
  [' ', /empty/],
])('the given name %j is no name', (name, reason) => {
  expect(unsafeEnvironmentName({ id: 'a', name })).toMatch(reason)
})

it('a path that makes no name is told of too', () => {
  expect(unsafeEnvironmentName({ id: './.hidden.mjs' })).toMatch(/dot/)
  expect(unsafeEnvironmentName({ id: '../..' })).toMatch(/dot|empty/)
})

it('a file that is missing, or that Node does not run, is known without importing it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-name-'))
  try {
    writeFileSync(join(folder, 'ok.mjs'), 'throw new Error("imported")')
    expect(environmentFileProblem('./ok.mjs', folder)).toBeUndefined()
    expect(environmentFileProblem('no-path', folder)).toBeUndefined()
    expect(environmentFileProblem('./missing.mjs', folder, 'orchestrator.train.env.0.id')).toMatchObject({
      code: 'ENVIRONMENT_INVALID',
      path: 'orchestrator.train.env.0.id',
      message: `the environment ./missing.mjs: there is no file ${join(folder, 'missing.mjs')}`,
    })
    expect(environmentFileProblem('./ok.ts', folder)).toMatchObject({ code: 'ENVIRONMENT_INVALID', hint: expect.stringMatching(/Compile/) })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
