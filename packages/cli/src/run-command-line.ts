import { Command, CommanderError } from 'commander'
import { alphabetSortCommand } from './commands/alphabet-sort.ts'
import { doctorCommand } from './commands/doctor.ts'
import { evalCommand } from './commands/eval.ts'
import { initModelCommand } from './commands/init-model.ts'
import { newCommand } from './commands/new.ts'
import { plotCommand } from './commands/plot.ts'
import { pluginsCommand } from './commands/plugins.ts'
import { reverseTextCommand } from './commands/reverse-text.ts'
import { roleCommands } from './commands/role.ts'
import { schemaCommand } from './commands/schema.ts'
import type { CommandLineHost } from './host.ts'
import { knownError, reportFailure } from './report-failure.ts'
import { tellLauncher } from './tell-launcher.ts'

/**
 * Runs one command and resolves to its exit status: 0 done, 1 run failed, 2 configuration or usage, 3 not available here, 130 interrupted.
 * Nothing is thrown, and nothing but the given outputs is written to.
 */
export async function runCommandLine(argv: readonly string[], host: CommandLineHost): Promise<number> {
  let status = 0
  const finish = (code: number) => {
    status = code
  }
  const program = new Command('trilithon')
    .description('Asynchronous reinforcement learning for mixture-of-experts language models.')
    .exitOverride()
    .enablePositionalOptions()
    .helpCommand(false)
    .showHelpAfterError(false)
    .showSuggestionAfterError(true)
    .configureOutput({ writeOut: (text) => host.stdout.write(text), writeErr: (text) => host.stderr.write(text) })
    .addHelpText('after', '\nExit status: 0 done, 1 run failed, 2 configuration or usage, 3 not available here, 130 interrupted.')
  for (const command of [
    ...roleCommands(host, finish),
    pluginsCommand(host, finish),
    doctorCommand(host, finish),
    schemaCommand(host, finish),
    newCommand(host, finish),
    initModelCommand(host, finish),
    reverseTextCommand(host, finish),
    alphabetSortCommand(host, finish),
    evalCommand(host, finish),
    plotCommand(host, finish),
  ]) {
    program.addCommand(
      command.exitOverride().configureOutput({ writeOut: (text) => host.stdout.write(text), writeErr: (text) => host.stderr.write(text) }),
    )
  }
  try {
    if (argv.length === 0) {
      program.outputHelp({ error: true })
      return 2
    }
    await program.parseAsync([...argv], { from: 'user' })
    return status
  } catch (error) {
    // commander has written its own sentence already; --help is not a failure.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    await tellLauncher(argv[0] ?? '', knownError(error))
    return reportFailure(error, host, { json: argv.includes('--json'), verbose: argv.includes('--verbose') })
  }
}
