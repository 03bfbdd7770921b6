import { TrilithonError } from '@trilithon/core'
import type { Expectation } from './shape.ts'

/** One step of a composition in the order of the command line. */
export type ArgumentStep =
  | { readonly kind: 'file'; readonly at: readonly string[]; readonly file: string; readonly flag: string }
  | {
      readonly kind: 'set'
      readonly at: readonly string[]
      readonly words: readonly string[]
      readonly negated: boolean
      readonly flag: string
    }

/** Finds the key that a flag's segments (kebab or snake) name, and what may stand there. */
export type FlagResolver = (segments: readonly string[]) => { readonly path: readonly string[]; readonly expectation: Expectation }

/**
 * Splits a command line of the form `@ a.toml @ b.toml --a.b @ c.toml --d.e value --xs 1 2 3 --flag --no-other --f=value`.
 *
 * How many words belong to a flag depends on what its key expects: none or true/false for a boolean, all that follow for a list, one
 * otherwise. A word that starts with `--` is always a flag, so a value of that form is written `--key=--value`.
 */
export function parseArguments(argv: readonly string[], resolve: FlagResolver): { steps: ArgumentStep[]; problems: TrilithonError[] } {
  const steps: ArgumentStep[] = []
  const problems: TrilithonError[] = []
  const usage = (message: string, flag: string, hint: string) =>
    problems.push(new TrilithonError('USAGE_INVALID', message, { source: { kind: 'flag', flag }, hint }))
  const isWord = (word: string | undefined): word is string => word !== undefined && word !== '@' && !isFlag(word)

  let index = 0
  while (index < argv.length) {
    const word = argv[index++] ?? ''
    if (word === '@') {
      const file = argv[index]
      if (!isWord(file)) usage('`@` needs a file after it', '@', 'Write `@ run.toml`.')
      else {
        steps.push({ kind: 'file', at: [], file, flag: '@' })
        index++
      }
      continue
    }
    if (word.startsWith('@')) {
      usage(`\`${word}\` is not understood`, word, `Write \`@ ${word.slice(1)}\`, with a space.`)
      continue
    }
    if (!isFlag(word)) {
      usage(`\`${word}\` belongs to no flag`, word, 'Files come after `@ `, values after their --flag.')
      continue
    }

    const equals = word.indexOf('=')
    const flag = equals < 0 ? word : word.slice(0, equals)
    const name = flag.slice(2)
    if (!/^[^.\s]+(\.[^.\s]+)*$/.test(name)) {
      usage(`\`${flag}\` is not the name of a key`, flag, 'Write --table.key value.')
      while (equals < 0 && isWord(argv[index])) index++
      continue
    }
    const negated = /^no[-_]/.test(name)
    const { path: at, expectation } = resolve((negated ? name.slice(3) : name).split('.'))
    if (equals >= 0) {
      steps.push({ kind: 'set', at, words: [word.slice(equals + 1)], negated, flag })
      continue
    }
    const next = argv[index]
    if (negated) {
      steps.push({ kind: 'set', at, words: [], negated, flag })
    } else if (expectation === 'boolean') {
      const given = next !== undefined && /^(true|false)$/i.test(next)
      steps.push({ kind: 'set', at, words: given ? [next] : [], negated, flag })
      if (given) index++
    } else if ((expectation === 'table' || expectation === 'unknown') && next === '@' && isWord(argv[index + 1])) {
      steps.push({ kind: 'file', at, file: argv[index + 1] ?? '', flag })
      index += 2
    } else if (expectation === 'table' && next !== undefined && next.length > 1 && next.startsWith('@')) {
      steps.push({ kind: 'file', at, file: next.slice(1), flag })
      index++
    } else {
      const most = expectation === 'list' || expectation === 'unknown' ? Number.POSITIVE_INFINITY : 1
      const words: string[] = []
      while (words.length < most && isWord(argv[index])) words.push(argv[index++] ?? '')
      steps.push({ kind: 'set', at, words, negated, flag })
    }
  }
  return { steps, problems }
}

function isFlag(word: string): boolean {
  return word.startsWith('--') && word.length > 2
}
