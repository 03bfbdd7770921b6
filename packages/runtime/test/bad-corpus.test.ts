import { errorCodes, formatSource, TrilithonError } from '@trilithon/core'
import { expect, test } from 'vitest'
import { compose } from '../src/compose/compose.ts'
import { rootNames } from '../src/compose/root-definitions.ts'
import { renderError } from '../src/report/render.ts'
import { type BadFile, badFiles, badFolder } from './bad-corpus.ts'
import { ruleSites } from './rule-messages.ts'

const corpus = badFiles()
const provoked: TrilithonError[] = []

async function errorOf({ root, argv, environment }: BadFile): Promise<TrilithonError> {
  try {
    await compose({ root, argv, workingDirectory: badFolder, environment })
  } catch (error) {
    if (TrilithonError.is(error)) return error
    throw error
  }
  throw new Error('the configuration is sound')
}

test('the corpus has at least 80 files, each with its rule, root and code', () => {
  expect(corpus.length).toBeGreaterThanOrEqual(80)
  for (const { file, rule, root, code } of corpus) {
    expect(rule, file).toMatch(/^\S.*\.$/)
    expect(rootNames, file).toContain(root)
    expect(Object.keys(errorCodes), file).toContain(code)
  }
})

// known fault A14: a configuration that makes no sense is accepted.
test.each(corpus.map((bad) => [bad.file, bad.rule, bad] as const))('%s: %s', async (_, __, bad) => {
  const error = await errorOf(bad)
  const problems = error.problems.length > 0 ? error.problems : [error]
  provoked.push(...problems)
  const told = problems.map(({ code, path, source }) => ({ code, at: path, source: source && formatSource(source) }))
  expect(told).toEqual([{ code: bad.code, at: bad.at, source: bad.source }])
  const [problem] = problems
  expect(problem?.message).toMatch(/\S/)
  expect(problem?.hint).toMatch(/\S/)
  if (bad.hint !== undefined) expect(problem?.hint).toContain(bad.hint)
  // A person sees code, place, message and hint, and no stack; a script sees the exit status.
  const shown = renderError(error, { colors: false })
  for (const part of [bad.code, bad.source ?? bad.at ?? '', problem?.message ?? '', problem?.hint ?? '']) expect(shown).toContain(part)
  expect(shown).not.toMatch(/\n\s+at .*:\d+/)
  expect(error.exitStatus).toBe(2)
})

test('every rule between keys has its file (known fault A14)', () => {
  const sites = ruleSites()
  expect(sites.length).toBeGreaterThan(80)
  const uncovered = sites.filter(
    ({ message, path }) =>
      !provoked.some((problem) => message.test(problem.message) && (path === undefined || problem.path?.endsWith(path))),
  )
  expect(uncovered.map(({ place }) => place)).toEqual([])
})
