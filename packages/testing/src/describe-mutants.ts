import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import type { CaseResult, SuiteCase } from './suite.ts'

/** A small fault planted into a filling, and the sentence of the contract whose cases must notice it. */
export interface Mutant {
  readonly sentence: string
  /** What the changed filling does wrong. */
  readonly name: string
  /** File below `sources`. */
  readonly file: string
  /** Text that stands in the file exactly once. */
  readonly search: string
  readonly replace: string
}

export interface MutationProof<Context, Name extends string> {
  /** Folder of the package with `src` and `node_modules`; its `src` is copied for each mutant. */
  readonly packageRoot: string
  readonly mutants: readonly Mutant[]
  /** The cases that the filling has to pass: `selectCases(table, capabilities)`. */
  readonly cases: readonly SuiteCase<Context, Name>[]
  /** Imports the filling from a copy of the sources and runs cases on it: `runCases(cases, …)`. */
  readonly run: (sources: string, cases: readonly SuiteCase<Context, Name>[]) => Promise<readonly CaseResult[]>
}

/** Proves a suite by mutation: the filling as it is passes, and with any one of the faults a case of the sentence that forbids it fails. */
export function describeMutants<Context, Name extends string>(title: string, proof: MutationProof<Context, Name>): void {
  const { packageRoot, mutants, cases, run } = proof
  describe(title, () => {
    it('has a mutant for every sentence that the filling has to hold', () => {
      const covered = new Set(mutants.map(({ sentence }) => sentence))
      const missing = new Set(cases.map(({ name }) => sentenceOf(name)).filter((sentence) => !covered.has(sentence)))
      assert.deepEqual([...missing], [])
    })

    it('passes every case without a mutation', async () => {
      await inCopy(packageRoot, async (sources) => {
        const results = await run(sources, cases)
        assert.deepEqual(
          results.filter(({ status }) => status !== 'passed'),
          [],
        )
      })
    })

    for (const { sentence, name, file, search, replace } of mutants)
      it(`${sentence} notices a filling that ${name}`, async () => {
        await inCopy(packageRoot, async (sources) => {
          const path = join(sources, file)
          const text = readFileSync(path, 'utf8')
          assert.equal(text.split(search).length - 1, 1, `the text to search must stand exactly once in ${file}: ${search}`)
          writeFileSync(
            path,
            text.replace(search, () => replace),
          )
          const results = await run(
            sources,
            cases.filter((each) => sentenceOf(each.name) === sentence),
          )
          assert.ok(
            results.some(({ status }) => status === 'failed'),
            `no case of ${sentence} fails: ${JSON.stringify(results)}`,
          )
        })
      })
  })
}

const sentenceOf = (name: string): string => name.split(' ', 1)[0] ?? ''

/** Runs `use` on a copy of the sources. Outside the package, so that no watcher or linter sees it; imports of packages resolve as there. */
async function inCopy(packageRoot: string, use: (sources: string) => Promise<void>): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trilithon-mutant-')))
  try {
    const sources = join(folder, 'src')
    cpSync(join(packageRoot, 'src'), sources, { recursive: true, filter: (path) => !path.endsWith('.test.ts') })
    symlinkSync(join(packageRoot, 'node_modules'), join(folder, 'node_modules'), 'dir')
    await use(sources)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
