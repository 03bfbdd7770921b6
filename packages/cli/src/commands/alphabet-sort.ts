import { TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'
import { splitOf, wholeNumber } from '../option-values.ts'
import { writeRows } from '../write-rows.ts'

interface RowsOptions {
  readonly out: string
  readonly count: string
  readonly seed: string
  readonly split: string
  readonly args: string
}

/** `alphabet-sort rows`: data for the start of examples/alphabet-sort. */
export function alphabetSortCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  const rows = new Command('rows')
    .summary('training data of a start that knows everything but the order')
    .description(
      'Writes conversations of the task as JSONL, {"messages": [...]}: words come turn by turn, and each answer has all words so far, in an order drawn at random. ' +
        'Equal seeds give equal rows.',
    )
    .requiredOption('--out <file>', 'file that is written, folders included')
    .option('--count <number>', 'rows', '4096')
    .option('--seed <number>', 'seed of the rows', '0')
    .option('--args <json>', 'arguments of the environment, as in the configuration of a run: {"min_words": 2}', '{}')
    .option('--split <split>', 'train or held-out: no list of words is in both', 'train')
    .option('--verbose', 'show stacks and causes of errors')
    .exitOverride()
    .configureOutput({ writeOut: (text) => host.stdout.write(text), writeErr: (text) => host.stderr.write(text) })
    .action(async (options: RowsOptions) => {
      await rowsOf(options, host)
      finish(0)
    })
  return new Command('alphabet-sort')
    .summary('the task of examples/alphabet-sort: data for its start')
    .description('The task alphabet-sort: words come turn by turn, and a model answers with the sorted list of all so far.')
    .addCommand(rows)
}

async function rowsOf({ out, count, seed, split, args }: RowsOptions, host: CommandLineHost): Promise<void> {
  const { alphabetSortEnvironment, alphabetSortRows } = await import('@trilithon/environments')
  const parsed = alphabetSortEnvironment.args.safeParse(parseJson(args))
  if (!parsed.success) throw argsFault(parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'they'}: ${message}`).join('; '))
  const rows = alphabetSortRows({
    count: wholeNumber('--count', count, 1),
    seed: wholeNumber('--seed', seed, 0),
    split: splitOf(split) === 'train' ? 'train' : 'eval',
    args: parsed.data,
  })
  writeRows(rows, out, host)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw argsFault((cause as Error).message, cause)
  }
}

function argsFault(reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('USAGE_INVALID', `the arguments of alphabet-sort cannot be used: ${reason}`, {
    path: '--args',
    hint: 'Give an object as JSON, with the arguments of the environment.',
    cause,
  })
}
