import { coreSeams, TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'

interface PluginRow {
  readonly seam: string
  readonly name: string
  readonly type: string | null
  readonly origin: string
  readonly version: string | null
  readonly claims: readonly string[]
}

/** Lists the plugins that can be chosen here, by their manifests; none of them runs. */
export function pluginsCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  return new Command('plugins')
    .summary('the plugins that can be chosen here')
    .description('Lists built-in and installed plugins by their manifests, and the packages that are known and not installed.')
    .option('--seam <seam>', `only plugins of this seam (${coreSeams.map(({ id }) => id).join(', ')})`)
    .option('--json', 'machine-readable output')
    .option('--verbose', 'show stacks and causes of errors')
    .action(async ({ seam, json }: { seam?: string; json?: boolean }) => {
      const seamIds = coreSeams.map(({ id }) => id)
      if (seam !== undefined && !seamIds.includes(seam)) {
        throw new TrilithonError('USAGE_INVALID', `there is no seam "${seam}"`, {
          source: { kind: 'flag', flag: '--seam' },
          hint: `Seams: ${seamIds.join(', ')}.`,
        })
      }
      const { builtInCandidates, discoverInstalled, knownPlugins } = await import('@trilithon/runtime')
      const { candidates, problems } = discoverInstalled(host.workingDirectory)
      const rows = [...builtInCandidates, ...candidates].map(
        ({ name, origin, version, manifest }): PluginRow => ({
          seam: manifest.seam,
          name,
          type: manifest.type ?? null,
          origin,
          version: version ?? null,
          claims: manifest.claims.map(({ at, type, keys }) => (type === undefined ? `${at}: ${keys.join(', ')}` : `${at} type "${type}"`)),
        }),
      )
      const shown = rows.filter((row) => seam === undefined || row.seam === seam)
      const installed = new Set(rows.map(({ name }) => name))
      const absent = knownPlugins().filter((plugin) => !installed.has(plugin.package))
      if (json === true) {
        const known = absent.map((plugin) => ({ name: plugin.package, built: plugin.built }))
        host.stdout.write(`${JSON.stringify({ plugins: shown, known, problems: problems.map((problem) => problem.toJSON()) })}\n`)
      } else {
        host.stdout.write(render(shown))
        if (seam === undefined && absent.length > 0) {
          host.stdout.write(
            `\nKnown and not here:\n${absent.map((plugin) => `  ${plugin.package}${plugin.built ? `  pnpm add ${plugin.package}` : '  not built yet'}`).join('\n')}\n`,
          )
        }
        for (const { message, hint } of problems) host.stderr.write(`${message}\n  ${hint ?? ''}\n`)
      }
      finish(problems.length > 0 ? 2 : 0)
    })
}

function render(rows: readonly PluginRow[]): string {
  if (rows.length === 0) return 'No plugin.\n'
  const width = (pick: (row: PluginRow) => string) => Math.max(...rows.map((row) => pick(row).length))
  const seamWidth = width(({ seam }) => seam)
  const nameWidth = width(({ name }) => name)
  const lines = rows.map(({ seam, name, origin, version, claims }) =>
    `${seam.padEnd(seamWidth)}  ${name.padEnd(nameWidth)}  ${(version === null ? origin : `${origin} ${version}`).padEnd(10)}  ${claims.join('; ') || 'by default'}`.trimEnd(),
  )
  return `${lines.join('\n')}\n`
}
