import { distance } from 'fastest-levenshtein'

/**
 * The known name that a mistyped one most likely stands for: one that it begins, one that begins it, or one that differs in two letters (a swap
 * counts as two), in one for names under four letters, in a third of long ones. Undefined when none is near.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const allowed = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3))
  let best: string | undefined
  let bestDistance = allowed + 1
  for (const candidate of known) {
    const begins = (short: string, long: string) => short.length >= 3 && long.startsWith(short)
    const apart = begins(name, candidate) ? 0 : begins(candidate, name) ? 1 : distance(name, candidate)
    if (apart < bestDistance) {
      best = candidate
      bestDistance = apart
    }
  }
  return best
}
