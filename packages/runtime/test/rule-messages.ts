import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const packages = fileURLToPath(new URL('../..', import.meta.url))

/** Sources that hold the rules between keys. */
export const ruleFiles = [
  'trainer/src/configuration/trainer-rules.ts',
  'trainer/src/configuration/sft-rules.ts',
  'trainer/src/configuration/mesh-rules.ts',
  'orchestrator/src/configuration/orchestrator-rules.ts',
  'inference/src/configuration/inference-rules.ts',
  'runtime/src/roots/rl-rules.ts',
  'runtime/src/roots/rl-rank-rules.ts',
]

export interface RuleSite {
  readonly place: string
  /** What its message looks like. */
  readonly message: RegExp
  /** End of the path that it is about, where the source says it in one word. */
  readonly path: string | undefined
}

/**
 * Every place where a rule yields a problem, read from the sources: `message: …, path` and calls of the helpers `differ(what, path)` and
 * `customOnly(path, what)`.
 */
export function ruleSites(): RuleSite[] {
  return ruleFiles.flatMap((file) => {
    const source = readFileSync(`${packages}/${file}`, 'utf8')
    const placeOf = (index: number) => `${file}:${source.slice(0, index).split('\n').length}`
    const sites: RuleSite[] = []
    for (const match of source.matchAll(/message:\s*(?=['`])/g)) {
      const { pattern, end } = literalAt(source, match.index + match[0].length)
      const path = /^,\s*path(?:: (?:'([^']*)'|`[^`]*?\.([\w.]+)`))?/.exec(source.slice(end))
      // A notice has its message last.
      if (path !== null) sites.push({ place: placeOf(match.index), message: pattern, path: path[1] ?? path[2] })
    }
    for (const match of source.matchAll(/differ\(\s*'([^']+)',\s*'([^']+)'/g))
      sites.push({ place: placeOf(match.index), message: new RegExp(escaped(match[1] ?? '')), path: match[2] })
    for (const match of source.matchAll(/customOnly\('([^']+)', (?=['`])/g))
      sites.push({
        place: placeOf(match.index),
        message: beginning(literalAt(source, match.index + match[0].length).pattern),
        path: match[1],
      })
    return sites
  })
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const beginning = ({ source, flags }: RegExp) => new RegExp(source.replace(/\$$/, ''), flags)

/** A string literal of the source as a pattern: what is put into it may be anything. */
function literalAt(source: string, start: number): { pattern: RegExp; end: number } {
  const quote = source[start]
  let pattern = ''
  let index = start + 1
  while (source[index] !== quote) {
    if (quote === '`' && source.startsWith('${', index)) {
      index = endOfHole(source, index + 2)
      pattern += '.*'
    } else pattern += escaped(source[index++] ?? '')
  }
  return { pattern: new RegExp(`^${pattern}$`, 's'), end: index + 1 }
}

function endOfHole(source: string, start: number): number {
  let index = start
  for (let depth = 1; depth > 0; index++) {
    const char = source[index]
    if (char === '`' || char === "'") index = literalAt(source, index).end - 1
    else if (char === '{') depth++
    else if (char === '}') depth--
  }
  return index
}
