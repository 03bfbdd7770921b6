import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'
import type { PluginPlan } from '../new-plugin/plan-plugin.ts'
import { templateSeams } from '../new-plugin/seam-templates.ts'

/** `new plugin <name> --seam <seam>`: the start of a package, in `plugins/` of the workspace or in a folder of its own. */
export function newCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  const output = { writeOut: (text: string) => host.stdout.write(text), writeErr: (text: string) => host.stderr.write(text) }
  const plugin = new Command('plugin')
    .summary('the start of a plugin')
    .description(
      'Writes a package that compiles, passes describePlugin, and fails the suite of its seam with the list of what to write. ' +
        'Inside of the workspace of Trilithon it goes to plugins/, elsewhere into a folder of its name.',
    )
    .argument('<name>', 'npm name in kebab-case, with a scope or without: my-router, @acme/my-router')
    .requiredOption('--seam <seam>', `what it fills: ${templateSeams.join(', ')}`)
    .option('--verbose', 'show stacks and causes of errors')
    .exitOverride()
    .configureOutput(output)
    .action(async (name: string, { seam }: { seam: string }) => {
      const { planPlugin } = await import('../new-plugin/plan-plugin.ts')
      const workspace = findWorkspace(host.workingDirectory)
      const base = workspace ?? host.workingDirectory
      const place = workspace === undefined ? 'alone' : 'workspace'
      const plan = planPlugin({ name, seam, place, exists: (path) => existsSync(join(base, path)) })
      write(plan, base)
      host.stdout.write(
        `${plan.files.map(({ path }) => `wrote ${path}`).join('\n')}\n\nNext${workspace === undefined ? '' : `, in ${base}`}:\n`,
      )
      host.stdout.write(`${plan.next.map((step) => `  ${step}`).join('\n')}\n`)
      finish(0)
    })
  return new Command('new')
    .summary('start something of your own')
    .description('Writes the start of something of your own.')
    .addCommand(plugin)
}

/** Root of the workspace of Trilithon that a folder lies in. */
function findWorkspace(folder: string): string | undefined {
  for (let current = resolve(folder); ; current = dirname(current)) {
    const core = join(current, 'packages', 'core', 'package.json')
    if (
      existsSync(join(current, 'pnpm-workspace.yaml')) &&
      existsSync(core) &&
      JSON.parse(readFileSync(core, 'utf8')).name === '@trilithon/core'
    )
      return current
    if (dirname(current) === current) return undefined
  }
}

function write({ files }: PluginPlan, base: string): void {
  try {
    for (const { path, text } of files) {
      mkdirSync(dirname(join(base, path)), { recursive: true })
      writeFileSync(join(base, path), text, { flag: 'wx' })
    }
  } catch (cause) {
    throw new TrilithonError(
      'OUTPUT_UNUSABLE',
      `the package cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        path: base,
        hint: 'Make the folder writable, or run the command in another one.',
        cause,
      },
    )
  }
}
