import { resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'
import { splitOf, wholeNumber } from '../option-values.ts'
import { writeRows } from '../write-rows.ts'

/** `reverse-text rows` and `reverse-text measure`: data for the example, and how good a model is at it. */
export function reverseTextCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  const output = { writeOut: (text: string) => host.stdout.write(text), writeErr: (text: string) => host.stderr.write(text) }
  const rows = new Command('rows')
    .summary('training data of the task')
    .description('Writes rows of the task as JSONL: {"prompt": "abcd=", "completion": "dcba"}. Equal seeds give equal rows.')
    .requiredOption('--out <file>', 'file that is written, folders included')
    .option('--count <number>', 'rows', '4096')
    .option('--seed <number>', 'seed of the rows', '0')
    .option('--noise <share>', 'chance that a letter of the answer is replaced by a random one', '0')
    .option('--split <split>', 'train or held-out: no text is in both', 'train')
    .option('--verbose', 'show stacks and causes of errors')
    .exitOverride()
    .configureOutput(output)
    .action(async (options: RowsOptions) => {
      await rowsOf(options, host)
      finish(0)
    })
  const measure = new Command('measure')
    .summary('mean reward of a model')
    .description(
      'Samples answers to held-out prompts, one each, and prints their mean reward (2·LCS over both lengths) with its standard error.',
    )
    .argument('<model>', 'folder of the model')
    .option('--count <number>', 'prompts', '1024')
    .option('--seed <number>', 'seed of prompts and samples', '0')
    .option('--temperature <number>', '0 takes the likeliest token', '1')
    .option('--max-tokens <number>', 'longest answer, end token included', '9')
    .option('--split <split>', 'train or held-out', 'held-out')
    .option('--json', 'machine-readable output')
    .option('--verbose', 'show stacks and causes of errors')
    .exitOverride()
    .configureOutput(output)
    .action(async (model: string, options: MeasureOptions) => {
      await measureReward(model, options, host)
      finish(0)
    })
  return new Command('reverse-text')
    .summary('the task of examples/reverse-text: data, and the reward of a model')
    .description('The task reverse-text: a model answers "abcd=" with "dcba".')
    .addCommand(rows)
    .addCommand(measure)
}

interface RowsOptions {
  readonly out: string
  readonly count: string
  readonly seed: string
  readonly noise: string
  readonly split: string
}

interface MeasureOptions {
  readonly count: string
  readonly seed: string
  readonly temperature: string
  readonly maxTokens: string
  readonly split: string
  readonly json?: boolean
}

async function rowsOf({ out, count, seed, noise, split }: RowsOptions, host: CommandLineHost): Promise<void> {
  const { reverseTextRows } = await import('@trilithon/environments')
  const rows = reverseTextRows({
    count: wholeNumber('--count', count, 1),
    seed: wholeNumber('--seed', seed, 0),
    noise: between('--noise', noise, 0, 1),
    split: splitOf(split),
  })
  writeRows(rows, out, host)
}

async function measureReward(folder: string, options: MeasureOptions, host: CommandLineHost): Promise<void> {
  const [{ loadModel }, { loadTokenizer }, { reverseTextReward, reverseTextTask }, { sampleAnswers }] = await Promise.all([
    import('@trilithon/models'),
    import('@trilithon/renderers'),
    import('@trilithon/environments'),
    import('../reverse-text/sample-answers.ts'),
  ])
  const count = wholeNumber('--count', options.count, 2)
  const seed = wholeNumber('--seed', options.seed, 0)
  const split = splitOf(options.split)
  const settings = {
    seed,
    temperature: between('--temperature', options.temperature, 0, Number.MAX_VALUE),
    maxTokens: wholeNumber('--max-tokens', options.maxTokens, 1),
  }
  const path = resolve(host.workingDirectory, folder)
  const { model } = loadModel(path)
  try {
    const tokenizer = loadTokenizer(path)
    const tasks = Array.from({ length: count }, (_, index) => reverseTextTask(split, seed, index))
    const begin = performance.now()
    const answers = sampleAnswers(model, {
      ...settings,
      prompts: tasks.map(({ prompt }) => tokenizer.encode(prompt)),
      stopIds: tokenizer.stopIds,
    })
    const seconds = (performance.now() - begin) / 1000
    const rewards = tasks.map(({ letters }, index) => reverseTextReward(letters, tokenizer.decode(answers[index] ?? [])))
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / count
    const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / (count - 1)
    const exact = rewards.filter((reward) => reward === 1).length / count
    const length = answers.reduce((sum, answer) => sum + answer.length, 0) / count
    const result = { reward: mean, standard_error: Math.sqrt(variance / count), exact, mean_length: length, prompts: count, split, seconds }
    if (options.json === true) host.stdout.write(`${JSON.stringify(result)}\n`)
    else
      host.stdout.write(
        `mean reward ${mean.toFixed(4)} ± ${result.standard_error.toFixed(4)}, exact ${exact.toFixed(3)}, mean length ${length.toFixed(2)} (${count} ${split} prompts, ${seconds.toFixed(1)} s)\n`,
      )
  } finally {
    model.dispose()
  }
}

function between(flag: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= least && value <= most) return value
  const range = most === Number.MAX_VALUE ? `from ${least}` : `from ${least} to ${most}`
  throw new TrilithonError('USAGE_INVALID', `${flag} is ${JSON.stringify(text)}`, { path: flag, hint: `Give a number ${range}.` })
}
