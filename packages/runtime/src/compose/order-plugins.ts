import { type AnyPlugin, type Disposable, type Role, type Seam, TrilithonError } from '@trilithon/core'

/** Seams that a plugin needs, as a list; `required` tells the two kinds apart. */
export function needsOf(plugin: AnyPlugin): { readonly name: string; readonly seam: Seam<Disposable>; readonly required: boolean }[] {
  const list = (map: Readonly<Record<string, Seam<Disposable>>> | undefined, required: boolean) =>
    Object.entries(map ?? {}).map(([name, seam]) => ({ name, seam, required }))
  return [...list(plugin.requires, true), ...list(plugin.optional, false)]
}

/**
 * Puts plugins into the order of creation: whatever fills a needed seam comes first; otherwise the given order stays.
 *
 * Problems are `SEAM_UNFILLED` (a required seam that nothing fills in a role where the plugin runs) and `PLUGIN_ORDER_CYCLE`.
 */
export function orderPlugins<P extends { readonly definition: AnyPlugin; readonly roles: readonly Role[] }>(
  plugins: readonly P[],
): { ordered: P[]; problems: TrilithonError[] } {
  const ordered: P[] = []
  const problems: TrilithonError[] = []
  const state = new Map<P, 'visiting' | 'done'>()

  const visit = (plugin: P, chain: readonly P[]): void => {
    if (state.get(plugin) === 'done') return
    if (state.get(plugin) === 'visiting') {
      const names = [...chain.slice(chain.indexOf(plugin)), plugin].map((one) => one.definition.name)
      problems.push(
        new TrilithonError('PLUGIN_ORDER_CYCLE', `plugins need each other in a circle: ${names.join(' -> ')}`, {
          path: names[0],
          hint: 'Make one of these needs unnecessary.',
        }),
      )
      return
    }
    state.set(plugin, 'visiting')
    for (const { seam, required } of needsOf(plugin.definition)) {
      const fillers = plugins.filter((one) => one.definition.fills.key === seam.key)
      // Roles are processes: what is created in another one cannot be handed over.
      const lonely = plugin.roles.filter((role) => !fillers.some((filler) => filler.roles.includes(role)))
      if (required && (fillers.length === 0 || lonely.length > 0)) {
        const where = fillers.length === 0 ? 'no chosen plugin fills it' : `none fills it in the role ${lonely.join(', ')}`
        problems.push(
          new TrilithonError('SEAM_UNFILLED', `${plugin.definition.name} needs the seam ${seam.id}, and ${where}`, {
            path: plugin.definition.name,
            hint: `Choose a plugin for ${seam.id}: trilithon plugins --seam ${seam.id}`,
          }),
        )
      }
      for (const filler of fillers) visit(filler, [...chain, plugin])
    }
    state.set(plugin, 'done')
    ordered.push(plugin)
  }
  for (const plugin of plugins) visit(plugin, [])
  return { ordered, problems }
}
