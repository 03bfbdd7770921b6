import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'

interface InitModelOptions {
  readonly tokenizer: string
  readonly alphabet: string
  readonly init: string
  readonly seed: string
  readonly out: string
}

/** Files of a model folder that belong to its tokeniser. */
const tokenizerFiles = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'generation_config.json',
  'special_tokens_map.json',
]

/** `init-model <config.json> --out DIR`: a model folder with random weights, to train from nothing. */
export function initModelCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  return new Command('init-model')
    .summary('a model folder with random weights')
    .description(
      'Writes a model folder in the format of Hugging Face: config.json as it is given, model.safetensors with random weights, and a tokeniser. ' +
        'Equal seeds give equal bits, on every machine.',
    )
    .argument('<config>', 'config.json of the model')
    .requiredOption('--out <folder>', 'folder that is written; it must not exist')
    .option('--tokenizer <which>', 'chars for one token per character, or a folder whose tokeniser is copied', 'chars')
    .option('--alphabet <letters>', 'characters of the tokeniser chars, beside the separator =', 'abcdefghijklmnop')
    .option(
      '--init <scheme>',
      'config: all matrices by initializer_range; fan: each by the number of its inputs, for small models',
      'config',
    )
    .option('--seed <number>', 'seed of the weights', '0')
    .option('--verbose', 'show stacks and causes of errors')
    .action(async (config: string, options: InitModelOptions) => {
      await initModel(config, options, host)
      finish(0)
    })
}

async function initModel(config: string, { tokenizer, alphabet, init, seed, out }: InitModelOptions, host: CommandLineHost): Promise<void> {
  const { countParameters, createModel, initSchemes, parseModelConfig, saveModel } = await import('@trilithon/models')
  const path = resolve(host.workingDirectory, config)
  const folder = resolve(host.workingDirectory, out)
  if (existsSync(folder))
    throw new TrilithonError('OUTPUT_UNUSABLE', `${out} exists already`, { path: '--out', hint: 'Remove it, or name another folder.' })
  const number = Number(seed)
  if (!Number.isSafeInteger(number) || number < 0)
    throw new TrilithonError('USAGE_INVALID', `--seed is ${JSON.stringify(seed)}`, { path: '--seed', hint: 'Give a whole number from 0.' })
  const scheme = initSchemes.find((name) => name === init)
  if (scheme === undefined)
    throw new TrilithonError('USAGE_INVALID', `--init is ${JSON.stringify(init)}`, {
      path: '--init',
      hint: `Schemes: ${initSchemes.join(', ')}.`,
    })
  const text = readConfig(path, config)
  const parsed = parseModelConfig(parseJson(text, config), config)
  const { documents, size } = await tokenizerOf(tokenizer, alphabet, host.workingDirectory)
  if (size > parsed.vocabSize)
    throw new TrilithonError('TOKENIZER_INVALID', `the tokeniser has ${size} tokens, and ${config} a vocab_size of ${parsed.vocabSize}`, {
      path: config,
      hint: `Set vocab_size to at least ${size}.`,
    })
  const model = createModel(parsed, { init: scheme, seed: number, configText: text })
  try {
    saveModel(model, folder, { documents })
    host.stdout.write(`wrote ${out}: ${parsed.family}, ${countParameters(model.specs)} parameters, ${size} tokens, seed ${number}\n`)
  } finally {
    model.dispose()
  }
}

function readConfig(path: string, shown: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new TrilithonError('MODEL_NOT_FOUND', `${shown} cannot be read: ${(cause as Error).message}`, {
      path: shown,
      hint: 'Give the config.json of a model.',
      cause,
    })
  }
}

function parseJson(text: string, shown: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TrilithonError('MODEL_CONFIG_INVALID', `${shown} is not JSON: ${(cause as Error).message}`, {
      path: shown,
      hint: 'Correct the file.',
      cause,
    })
  }
}

async function tokenizerOf(which: string, alphabet: string, workingDirectory: string) {
  const { createCharTokenizer, loadTokenizer } = await import('@trilithon/renderers')
  if (which === 'chars') {
    const { tokenizer, files } = createCharTokenizer(alphabet)
    return { documents: files, size: tokenizer.vocabularySize }
  }
  const folder = resolve(workingDirectory, which)
  const { vocabularySize: size } = loadTokenizer(folder)
  const found = tokenizerFiles.filter((name) => existsSync(join(folder, name)))
  return { documents: Object.fromEntries(found.map((name) => [name, readFileSync(join(folder, name), 'utf8')])), size }
}
