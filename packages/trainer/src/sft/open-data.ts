import { basename, join, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import type { Model } from '@trilithon/models'
import { createRenderer, loadTokenizer, type Renderer, type Tokenizer } from '@trilithon/renderers'
import type { SftConfiguration } from '../configuration/sft-schema.ts'
import { createDataLoader, type DataLoader } from '../data/data-loader.ts'
import type { DataPosition, DocumentSource } from '../data/document-source.ts'
import { createFakeDocuments } from '../data/fake-documents.ts'
import { mixRows } from '../data/mix-rows.ts'
import type { RowSource } from '../data/row-source.ts'
import { openRows } from '../data/rows.ts'
import { createTextDocuments } from '../data/text-documents.ts'
import { chatTemplateOf } from '../run/tokenizer-documents.ts'

/** What the run trains on, and what it validates on. */
export interface SftData {
  /** Rows of a pass. */
  readonly rows: number
  open(position: DataPosition | undefined): DataLoader
  /** One pass from the start; null where nothing validates. */
  readonly openValidation: (() => DataLoader) | null
  close(): void
}

type DataTable = SftConfiguration['data']
type TextTable = Extract<DataTable, { type: 'sft' }>

export interface OpenDataOptions {
  readonly config: SftConfiguration
  readonly model: Model
  readonly workingDirectory: string
  readonly tokenizerFolder: string | null
}

export async function openData({ config, model, workingDirectory, tokenizerFolder }: OpenDataOptions): Promise<SftData> {
  const { data, val, numerics_profile: profile } = config
  for (const [path, { seq_len }] of [['data', data], ...(val === null ? [] : [['val.data', val.data] as const])] as const)
    refuseLength(`${path}.seq_len`, seq_len, model)
  const text = tokenizerFolder === null ? null : openText(config, tokenizerFolder, workingDirectory, model)
  const sources: DocumentSource[] = []
  const sourceOf = async (table: DataTable, path: string): Promise<DocumentSource> => {
    const source =
      table.type === 'fake'
        ? createFakeDocuments({
            vocabularySize: model.config.vocabSize,
            seqLen: table.seq_len,
            length: table.length,
            input_ids: table.input_ids,
          })
        : await openDocuments(table, path, text, workingDirectory)
    sources.push(source)
    return source
  }
  const loaderOf = (source: DocumentSource, table: DataTable, more: { position?: DataPosition; epochs?: number }) =>
    createDataLoader({
      source,
      seqLen: table.seq_len,
      batchSize: table.batch_size,
      microBatchSize: table.micro_batch_size,
      profile,
      ...more,
    })
  const close = () => {
    for (const source of sources) source.close()
  }
  try {
    const training = await sourceOf(data, 'data')
    const validation = val === null ? null : await sourceOf({ ...val.data, shuffle: false }, 'val.data')
    return {
      rows: training.rows,
      open: (position) => loaderOf(training, data, position === undefined ? {} : { position }),
      openValidation: val === null || validation === null ? null : () => loaderOf(validation, val.data, { epochs: 1 }),
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

async function openDocuments(
  table: TextTable,
  path: string,
  text: { tokenizer: Tokenizer; renderer: Renderer } | null,
  workingDirectory: string,
): Promise<DocumentSource> {
  if (text === null) throw new TrilithonError('INVARIANT_BROKEN', 'text is read with a tokeniser')
  const rows = await openSubsets(table, path, workingDirectory)
  try {
    return createTextDocuments({
      rows,
      renderer: text.renderer,
      eosId: text.tokenizer.eosId,
      seqLen: table.seq_len,
      lossMask: table.loss_mask,
      shuffle: table.shuffle,
      seed: table.seed,
    })
  } catch (error) {
    rows.close()
    throw error
  }
}

/** A subset is a folder below that of the data. */
async function openSubsets(table: TextTable, path: string, workingDirectory: string): Promise<RowSource> {
  const { name, subsets, splits, probabilities, stopping_strategy: stoppingStrategy, seed } = table
  const folder = resolve(workingDirectory, name)
  // The configuration has seen to it that the lists are equally long.
  const count = (subsets ?? splits ?? probabilities)?.length ?? 1
  if (probabilities?.every((share) => share === 0))
    throw new TrilithonError('CONFIG_VALUE_CONFLICT', 'every subset has the share 0', {
      path: `${path}.probabilities`,
      hint: 'Give one of them a share.',
    })
  const sources: RowSource[] = []
  try {
    for (let index = 0; index < count; index++) {
      const subset = subsets?.[index]
      sources.push(await openRows(subset === undefined ? folder : join(folder, subset), splits?.[index] ?? 'train'))
    }
    const [only] = sources
    return only !== undefined && count === 1 ? only : mixRows(sources, { probabilities, stoppingStrategy, seed })
  } catch (error) {
    for (const source of sources) source.close()
    throw error
  }
}

function openText(config: SftConfiguration, folder: string, workingDirectory: string, model: Model) {
  const tokenizer = loadTokenizer(folder)
  const { vocabSize } = model.config
  if (tokenizer.vocabularySize > vocabSize)
    throw new TrilithonError('TOKENIZER_INVALID', `${folder} has ${tokenizer.vocabularySize} tokens, and the model ${vocabSize}`, {
      path: 'tokenizer.name',
      hint: 'Give the tokeniser of the model.',
    })
  const chatTemplate = chatTemplateOf(config.tokenizer.chat_template, workingDirectory)
  return { tokenizer, renderer: createRenderer(config.renderer, { tokenizer, model: basename(config.model.name), chatTemplate }) }
}

function refuseLength(path: string, length: number, { config: { maxPositions } }: Model): void {
  if (length <= maxPositions) return
  throw new TrilithonError('CONFIG_VALUE_CONFLICT', `${path} is ${length}, and the model has positions for ${maxPositions} tokens`, {
    path,
    hint: `Set it to at most ${maxPositions}.`,
  })
}
