import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import { type CommandLineHost, usesColors } from '../host.ts'
import { refuseStart } from './refuse-start.ts'

const help = `Usage: trilithon eval @ rl.toml [--checkpoint DIR] [--table.key value] [options]

Evaluates a model as a run with this configuration would: starts engines that serve it and runs every environment of orchestrator.eval, at the temperature that is
configured there. Prints avg@k with its standard error, and writes a report. A run that is under way is not disturbed but for the processor.

Options:
  --checkpoint DIR         folder of the model, as weights/step_N of a run; by default that of the configuration
  --out FILE               the report, JSON; by default evaluations/NAME/evaluation.json in the output folder
  --json                   the report on standard output
  --verbose                show stacks and causes of errors
  -h, --help               this text

Every other flag is a key of the configuration, as in trilithon rl: --orchestrator.eval.num-examples 1024
`

/** `eval @ rl.toml --checkpoint DIR`: the mean reward of a model. */
export function evalCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  return new Command('eval')
    .summary('mean reward of a model in the environments of a run')
    .description('mean reward of a model in the environments of a run')
    .usage('@ rl.toml [--checkpoint DIR] [--table.key value]')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .passThroughOptions()
    .argument('[words...]')
    .action(async (words: string[]) => finish(await evaluate(words, host)))
}

async function evaluate(words: readonly string[], host: CommandLineHost): Promise<number> {
  const { values, flags, rest: argv } = ownWords(words)
  if (flags.has('--help') || flags.has('-h')) {
    host.stdout.write(help)
    return 0
  }
  const { compose, missingModels, outputFolder, startEvaluation } = await import('@trilithon/runtime')
  const { workingDirectory, environment } = host
  const recompose = (more: readonly string[]) => compose({ root: 'rl', argv: [...argv, ...more], workingDirectory, environment })
  const composition = await recompose([])
  const checkpoint = values.get('--checkpoint') ?? null
  if (checkpoint !== null) checkFolder(checkpoint, workingDirectory)
  const name = checkpoint === null ? 'model' : basename(resolve(workingDirectory, checkpoint))
  const folder = resolve(workingDirectory, outputFolder(composition), 'evaluations', name)
  const { status, error } = await startEvaluation(composition, {
    ...{ environment, output: host.stdout, colors: usesColors(host.stderr, environment), checkpoint, folder, recompose },
    report: values.has('--out') ? resolve(workingDirectory, values.get('--out') ?? '') : join(folder, 'evaluation.json'),
    json: flags.has('--json'),
    commandLine: [process.execPath, ...process.execArgv, fileURLToPath(new URL('../main.js', import.meta.url))],
    check: (final) => refuseStart([...final.unavailable, ...missingModels(final, environment)]),
  })
  if (error !== undefined) throw error
  return status
}

const withValue = ['--checkpoint', '--out']
const withoutValue = ['--json', '--verbose', '--help', '-h']

/** Words of this command apart from those of the configuration. Throws `USAGE_INVALID`. */
function ownWords(words: readonly string[]) {
  const values = new Map<string, string>()
  const flags = new Set<string>()
  const rest: string[] = []
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ''
    const [name = '', ...given] = word.split('=')
    if (withoutValue.includes(word)) flags.add(word)
    else if (!withValue.includes(name)) rest.push(word)
    else {
      const value = given.length > 0 ? given.join('=') : words[++index]
      if (value === undefined || value === '')
        throw new TrilithonError('USAGE_INVALID', `${name} has no value`, { path: name, hint: 'Give a path behind it.' })
      values.set(name, value)
    }
  }
  return { values, flags, rest }
}

function checkFolder(checkpoint: string, workingDirectory: string): void {
  const folder = resolve(workingDirectory, checkpoint)
  if (existsSync(join(folder, 'config.json'))) return
  throw new TrilithonError('MODEL_NOT_FOUND', `there is no model folder ${checkpoint} (no config.json in it)`, {
    path: '--checkpoint',
    hint: 'Give a folder of a model: a run writes them as weights/step_N beside its checkpoints.',
  })
}
