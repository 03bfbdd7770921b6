import { type Capabilities, TrilithonError } from '@trilithon/core'
import { describe, it } from 'vitest'

/** Ends a case that cannot be tried here; the reason is one sentence. */
export type SkipCase = (reason: string) => never

/** One testable thing that a contract says. Fails by throwing. */
export interface SuiteCase<Context, Name extends string = string> {
  /** The number of the contract's sentence first: `R7 a lease that was not ended expires`. */
  readonly name: Name
  /** Capabilities that must all be claimed for the case to count. */
  readonly claimed?: readonly string[]
  /** Capability that must not be claimed for the case to count. */
  readonly unclaimed?: string
  readonly run: (context: Context, skip: SkipCase) => void | Promise<void>
}

/** What a case runs on, fresh for each. */
export interface SuiteContext {
  close(): Promise<void>
}

/** Why a case does not hold for a filling, and a test of what the filling does instead. */
export interface CaseSkip<Context> {
  readonly reason: string
  readonly instead: (context: Context) => void | Promise<void>
}

export interface SuiteOptions<Context, Name extends string> {
  /** Those of the plugin: `definition.capabilities`. */
  readonly capabilities?: Capabilities | undefined
  readonly skip?: { readonly [N in Name]?: CaseSkip<Context> }
}

/** Types a table of cases so that the names become a union of literals; the second call takes the table. */
export function caseTable<Context>() {
  return <const Name extends string>(cases: readonly SuiteCase<Context, Name>[]): readonly SuiteCase<Context, Name>[] => cases
}

/** Cases that count for what is claimed, in the order of the table. */
export function selectCases<Context, Name extends string>(
  cases: readonly SuiteCase<Context, Name>[],
  capabilities: Capabilities = {},
): readonly SuiteCase<Context, Name>[] {
  const claims = (capability: string) => capabilities[capability] === true
  return cases.filter(({ claimed = [], unclaimed }) => claimed.every(claims) && (unclaimed === undefined || !claims(unclaimed)))
}

/** Enough for a case that starts a process on a loaded machine; vitest's own 5 s are not. */
const timeout = 30_000

/** Registers a table with vitest: one test per case, and for each skip what the filling does instead. */
export function describeSuite<Context extends SuiteContext, Name extends string>(
  title: string,
  cases: readonly SuiteCase<Context, Name>[],
  open: () => Promise<Context>,
  options: SuiteOptions<Context, Name> = {},
): void {
  const selected = selectCases(cases, options.capabilities)
  const skips = new Map<string, CaseSkip<Context> | undefined>(Object.entries(options.skip ?? {}))
  for (const [name, skip] of skips) assertSkip(title, name, skip, selected)

  describe(title, () => {
    for (const { name, run } of selected) {
      const skip = skips.get(name)
      if (skip === undefined) {
        it(name, { timeout }, ({ skip: skipTest }) => useContext(open, (context) => run(context, (reason) => skipTest(reason))))
      } else {
        it.skip(`${name} (${skip.reason})`)
        it(`instead of: ${name}`, { timeout }, () => useContext(open, skip.instead))
      }
    }
  })
}

export type CaseResult =
  | { readonly name: string; readonly status: 'passed' }
  | { readonly name: string; readonly status: 'skipped'; readonly reason: string }
  | { readonly name: string; readonly status: 'failed'; readonly error: unknown }

/** Runs cases without a test runner, one after the other: this is how mutants are tried. */
export async function runCases<Context extends SuiteContext, Name extends string>(
  cases: readonly SuiteCase<Context, Name>[],
  open: () => Promise<Context>,
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = []
  for (const { name, run } of cases) {
    const marker: { reason?: string } = {}
    const skip = (reason: string): never => {
      marker.reason = reason
      throw marker
    }
    try {
      await useContext(open, (context) => run(context, skip))
      results.push({ name, status: 'passed' })
    } catch (error) {
      results.push(error === marker ? { name, status: 'skipped', reason: marker.reason ?? '' } : { name, status: 'failed', error })
    }
  }
  return results
}

async function useContext<Context extends SuiteContext>(open: () => Promise<Context>, use: (context: Context) => void | Promise<void>) {
  const context = await open()
  try {
    await use(context)
  } finally {
    await context.close()
  }
}

/** Types catch this in TypeScript; a suite in plain JavaScript gets the same answer in words. */
function assertSkip(title: string, name: string, skip: CaseSkip<never> | undefined, selected: readonly SuiteCase<never>[]): void {
  if (!selected.some((suiteCase) => suiteCase.name === name))
    throw new TrilithonError('USAGE_INVALID', `The suite "${title}" has no case "${name}" for the capabilities that are claimed.`, {
      path: `skip["${name}"]`,
      hint: 'Remove the skip, or spell it as the case is named.',
    })
  if (typeof skip?.reason !== 'string' || skip.reason.trim() === '' || typeof skip.instead !== 'function')
    throw new TrilithonError('USAGE_INVALID', `The skip of "${name}" lacks a reason or a test of what happens instead.`, {
      path: `skip["${name}"]`,
      hint: 'Give { reason, instead }, where instead tests what the filling does in place of the sentence.',
    })
}
