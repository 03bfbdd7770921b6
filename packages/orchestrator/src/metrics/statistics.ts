export const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

/** `name/mean`, `name/max`, `name/min` of values that there are. */
export function spread(
  name: string,
  values: readonly number[],
  kinds: readonly ('mean' | 'max' | 'min')[] = ['mean', 'max', 'min'],
): Record<string, number> {
  if (values.length === 0) return {}
  const all = {
    mean: mean(values),
    max: values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY),
    min: values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY),
  }
  return Object.fromEntries(kinds.map((kind) => [`${name}/${kind}`, all[kind]]))
}

/** Items by a key, in the order in which the keys came. */
export function groupBy<T, Key>(items: readonly T[], keyOf: (item: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
