import { distance } from 'fastest-levenshtein'

/** The known name that a mistyped one most likely stands for: a prefix of it, or within a third of its letters. Undefined when none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const apart = name.length >= 3 && candidate.startsWith(name) ? 0 : distance(name, candidate)
    if (apart < bestDistance) {
      best = candidate
      bestDistance = apart
    }
  }
  return best
}
