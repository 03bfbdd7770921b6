import type { Turn } from '@trilithon/core'
import type { FilterTable } from '../configuration/filter-table.ts'

/** A filter that looks at the tokens finds its answer when the rollout arrives; the advantage is known when the group is whole. */
export interface RolloutFilter {
  readonly name: FilterTable['type']
  readonly isEnforced: boolean
  /** Undefined where the answer follows from the advantage. */
  readonly finds: ((turns: readonly Turn[]) => boolean) | undefined
}

/** What a list of filters says of a rollout: only the first filter that finds it is true. */
export interface FilterResult {
  readonly isFiltered: boolean
  readonly hits: Readonly<Record<string, boolean>>
}

export function createFilters(tables: readonly FilterTable[], vocabSize: number): readonly RolloutFilter[] {
  return tables.map((table) => ({ name: table.type, isEnforced: table.enforce, finds: findsOf(table, vocabSize) }))
}

function findsOf(table: FilterTable, vocabSize: number): RolloutFilter['finds'] {
  switch (table.type) {
    case 'gibberish': {
      const unlikely = -Math.log(vocabSize) - table.logprob_offset
      return (turns) => turns.some((turn) => isGibberish(turn, table.token_id_threshold, unlikely))
    }
    case 'repetition':
      return (turns) => hasRun(turns, table.window, Math.log(table.prob_threshold))
    case 'zero_advantage':
      return undefined
  }
}

function isGibberish({ completionIds, logprobs }: Turn, threshold: number, unlikely: number): boolean {
  for (let token = 0; token < completionIds.length; token++)
    if ((completionIds[token] ?? 0) > threshold && (logprobs[token] ?? 0) < unlikely) return true
  return false
}

/** A run goes on over turns. */
function hasRun(turns: readonly Turn[], window: number, certain: number): boolean {
  let run = 0
  for (const { logprobs } of turns)
    for (const logprob of logprobs) {
      run = logprob > certain ? run + 1 : 0
      if (run >= window) return true
    }
  return false
}

/** One bit per filter, for those that look at tokens. */
export const detect = (filters: readonly RolloutFilter[], turns: readonly Turn[]): readonly boolean[] =>
  filters.map(({ finds }) => finds?.(turns) ?? false)

/** Filters run in the order of the list; the first that hits wins, and drops the rollout if it is enforced. */
export function applyFilters(filters: readonly RolloutFilter[], detected: readonly boolean[], advantage: number): FilterResult {
  const hits: Record<string, boolean> = {}
  let isFiltered = false
  let isFound = false
  for (const [index, { name, isEnforced, finds }] of filters.entries()) {
    const isHit = !isFound && (finds === undefined ? advantage === 0 : detected[index] === true)
    hits[name] = isHit
    if (!isHit) continue
    isFound = true
    isFiltered = isEnforced
  }
  return { isFiltered, hits }
}
