import { fileURLToPath } from 'node:url'
import type { RootName } from '@trilithon/runtime'
import { Command } from 'commander'
import { type CommandLineHost, usesColors } from '../host.ts'
import { refuseStart, startProblems } from './refuse-start.ts'

/** Flags of the command line itself; every other flag is a key of the configuration. */
const ownFlags = ['--dry-run', '--json', '--verbose', '--help', '-h'] as const
type OwnFlag = (typeof ownFlags)[number]

/** One command per root: composes, and with `--dry-run` stops there. */
export function roleCommands(host: CommandLineHost, finish: (status: number) => void): Command[] {
  const summaries: Readonly<Record<RootName, string>> = {
    rl: 'reinforcement learning: inference, orchestrator and trainer as one run',
    sft: 'supervised fine-tuning',
    inference: 'the inference server alone',
    trainer: 'the trainer alone',
    orchestrator: 'the orchestrator alone',
    'env-server': 'an environment server alone',
  }
  return (Object.keys(summaries) as RootName[]).map((root) =>
    new Command(root)
      .summary(summaries[root])
      .description(summaries[root])
      .usage('@ file.toml [@ more.toml] [--table.key value] [--dry-run]')
      .helpOption(false)
      .allowUnknownOption()
      .allowExcessArguments()
      .passThroughOptions()
      .argument('[words...]')
      .action(async (words: string[]) => finish(await runRole(root, words, host))),
  )
}

async function runRole(root: RootName, words: readonly string[], host: CommandLineHost): Promise<number> {
  const given = new Set(words.filter((word): word is OwnFlag => (ownFlags as readonly string[]).includes(word)))
  const argv = words.filter((word) => !(ownFlags as readonly string[]).includes(word))
  if (given.has('--help') || given.has('-h')) {
    const { roleHelp } = await import('./role-help.ts')
    host.stdout.write(roleHelp(root))
    return 0
  }
  const { compose, missingModels, renderReport, reportOf, startRl, startRole, writeResolved } = await import('@trilithon/runtime')
  const { workingDirectory, environment } = host
  const composition = await compose({ root, argv, workingDirectory, environment })
  const unavailable = [...composition.unavailable, ...missingModels(composition, host.environment)]

  if (given.has('--dry-run') || composition.resolved[root]?.dry_run === true) {
    const report = reportOf(composition, unavailable, writeResolved(composition))
    if (given.has('--json')) host.stdout.write(`${JSON.stringify(report)}\n`)
    else host.stdout.write(renderReport(report, { colors: usesColors(host.stdout, host.environment) }))
    return 0
  }
  // A whole run has more to look at, and tells all of it at once.
  if (root !== 'rl') refuseStart(unavailable)
  const colors = usesColors(host.stderr, host.environment)
  const commandLine = [process.execPath, ...process.execArgv, fileURLToPath(new URL('../main.js', import.meta.url))] as const
  const options = { environment, output: host.stdout, colors, commandLine }
  const { status, error } =
    root === 'rl'
      ? await startRl(composition, {
          ...options,
          problems: startProblems(unavailable),
          recompose: (flags) => compose({ root, argv: [...argv, ...flags], workingDirectory, environment }),
        })
      : await startRole(composition, options)
  // What stopped it is told like every other error.
  if (error !== undefined) throw error
  return status
}
