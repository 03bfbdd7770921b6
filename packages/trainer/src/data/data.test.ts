import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MicroBatch } from '@trilithon/core'
import { TrilithonError } from '@trilithon/core'
import { createCharTokenizer, createTemplateRenderer } from '@trilithon/renderers'
import fc from 'fast-check'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDataLoader, type DataBatch, type DataLoaderOptions } from './data-loader.ts'
import type { DataPosition } from './document-source.ts'
import { createFakeDocuments } from './fake-documents.ts'
import { openRows } from './rows.ts'
import { shuffledOrder } from './shuffle.ts'
import { createTextDocuments, type TextDocumentsOptions } from './text-documents.ts'

const { tokenizer } = createCharTokenizer('abcdefghijklmnop', '=\n')
const renderer = createTemplateRenderer(tokenizer)
const assistantOnly = { system: false, user: false, assistant: true, tool: false }

/** The schema that the writer takes. */
type ParquetSchema = NonNullable<Parameters<typeof parquetWriteBuffer>[0]['schema']>

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-data-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (name: string, text: string | Uint8Array) => {
  const file = join(folder, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
  return file
}
const lines = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).join('\n')
/** Rows whose letters are their number, so that each can be told again. */
const letters = (number: number) =>
  [...number.toString(16).padStart(3, '0')].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16))).join('')
const row = (number: number, length = 3) => ({ prompt: `${letters(number)}=`, completion: letters(number).slice(0, length) })
const rowsOf = (count: number) => Array.from({ length: count }, (_, number) => row(number))

async function documents(path: string, more: Partial<TextDocumentsOptions> = {}) {
  const rows = await openRows(path)
  return createTextDocuments({
    rows,
    renderer,
    eosId: tokenizer.eosId,
    seqLen: 64,
    lossMask: assistantOnly,
    shuffle: false,
    seed: 0,
    ...more,
  })
}
async function failure(run: () => Promise<unknown> | unknown): Promise<TrilithonError> {
  try {
    await run()
  } catch (error) {
    if (TrilithonError.is(error)) return error
    throw error
  }
  throw new Error('nothing was refused')
}

/** Texts of the sequences of micro-batches, padding left out. */
function textsOf(batches: readonly MicroBatch[]): string[] {
  return batches.flatMap(({ inputIds, sequenceLengths, sampleIds }) => {
    let at = 0
    return sequenceLengths.flatMap((length, index) => {
      at += length
      return sampleIds[index] === '' ? [] : [tokenizer.decode(inputIds.subarray(at - length, at))]
    })
  })
}

describe('rows', () => {
  it('are lines of JSON, empty ones left out, each known by its line', async () => {
    const rows = await openRows(write('a.jsonl', `${JSON.stringify(row(0))}\n\n  \r\n${JSON.stringify(row(1))}\r\n{"prompt": "ü"}`))
    expect(rows.count).toBe(3)
    expect([0, 1, 2].map((index) => rows.read(index))).toEqual([row(0), row(1), { prompt: 'ü' }])
    expect([0, 1, 2].map((index) => rows.place(index).line)).toEqual([1, 4, 5])
    rows.close()
    rows.close()
  })

  it('are the same from lines, a list, and Parquet in any packing and several groups', async () => {
    const given = Array.from({ length: 25 }, (_, number) => ({
      messages: [
        { role: 'user', content: `${letters(number)}=` },
        { role: 'assistant', content: letters(number), ...(number % 5 === 0 ? { reasoning_content: 'ab' } : {}) },
      ],
    }))
    const sources = [write('a.jsonl', lines(given)), write('b.json', JSON.stringify(given))]
    for (const codec of ['SNAPPY', 'UNCOMPRESSED'] as const) {
      const data = parquetWriteBuffer({
        columnData: [{ name: 'messages', data: given.map(({ messages }) => messages), type: 'JSON' }],
        codec,
        rowGroupSize: 10,
      })
      sources.push(write(`${codec}.parquet`, new Uint8Array(data)))
    }
    // As data sets of Hugging Face are: lists of structs.
    const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' } as const
    const keys = ['role', 'content', 'reasoning_content']
    const schema: ParquetSchema = [
      { name: 'root', num_children: 1 },
      { name: 'messages', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', repetition_type: 'OPTIONAL', num_children: keys.length },
      ...keys.map((name) => ({ name, ...text })),
    ]
    const nested = parquetWriteBuffer({ columnData: [{ name: 'messages', data: given.map(({ messages }) => messages) }], schema })
    sources.push(write('nested.parquet', new Uint8Array(nested)))
    for (const path of sources) {
      const rows = await openRows(path)
      expect(Array.from({ length: rows.count }, (_, index) => rows.read(index))).toEqual(given)
      rows.close()
    }
  })

  it('are from a folder those of the split, in the order of names', async () => {
    write('data/train-00001-of-00002.jsonl', lines([row(2)]))
    write('data/train-00000-of-00002.jsonl', lines([row(0), row(1)]))
    write('data/test-00000-of-00001.jsonl', lines([row(9)]))
    write('README.md', 'no data')
    const read = async (split?: string) => {
      const rows = await openRows(folder, split)
      const all = Array.from({ length: rows.count }, (_, index) => rows.read(index))
      rows.close()
      return all
    }
    expect(await read()).toEqual([row(0), row(1), row(2)])
    expect(await read('test')).toEqual([row(9)])
    expect((await failure(() => read('dev'))).message).toMatch(/no data of the split dev/)
  })

  it.each<[string, () => string, string, RegExp]>([
    ['that are not there', () => join(folder, 'no.jsonl'), 'DATA_NOT_FOUND', /There is no data at/],
    ['with a name of a hub', () => 'PrimeIntellect/Reverse-Text-SFT', 'DATA_NOT_FOUND', /There is no data at/],
    ['of another kind', () => write('a.csv', 'a,b'), 'DATA_NOT_FOUND', /no file of a known kind/],
    ['in an empty folder', () => folder, 'DATA_NOT_FOUND', /holds no data/],
    ['that are none', () => write('a.jsonl', '\n\n'), 'DATA_INVALID', /has no row/],
    ['of a torn list', () => write('a.json', '[{"prompt": 1'), 'DATA_INVALID', /a\.json:1: the file is no JSON/],
    ['of a torn Parquet file', () => write('a.parquet', 'PAR1 and no more'), 'DATA_INVALID', /cannot be read as Parquet/],
  ])('%s are refused', async (_, path, code, message) => {
    const error = await failure(() => openRows(path()))
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)])
    expect(error.hint).toBeTruthy()
  })
})

describe('documents', () => {
  it('train the answer alone, with its end, and messages go before prompt and completion', async () => {
    const messages = [
      { role: 'user', content: 'ab=' },
      { role: 'assistant', content: 'ba' },
    ]
    const source = await documents(
      write(
        'a.jsonl',
        lines([
          { prompt: 'c=', completion: 'd', messages },
          { prompt: [{ role: 'user', content: 'c=' }], completion: 'c' },
        ]),
      ),
    )
    const first = source.read({ epoch: 0, row: 0 })
    expect(tokenizer.decode(first?.ids ?? [])).toBe('ab=ba<eos>')
    expect([...(first?.mask ?? [])]).toEqual([0, 0, 0, 1, 1, 1])
    expect(first?.where).toBe(`${join(folder, 'a.jsonl')}:1`)
    expect(tokenizer.decode(source.read({ epoch: 0, row: 1 })?.ids ?? [])).toBe('c=c<eos>')
  })

  it('train the roles that are asked for', async () => {
    const conversation = {
      messages: [
        { role: 'system', content: 'a' },
        { role: 'user', content: 'b' },
        { role: 'assistant', content: 'c' },
        { role: 'tool', content: 'd' },
      ],
    }
    const file = write('a.jsonl', lines([conversation]))
    const trained = async (roles: Partial<typeof assistantOnly>) => {
      const source = await documents(file, { lossMask: { ...assistantOnly, assistant: false, ...roles } })
      const { ids = [], mask = [] } = source.read({ epoch: 0, row: 0 }) ?? {}
      return tokenizer.decode([...ids].filter((_, token) => mask[token] === 1))
    }
    expect(await trained({ user: true })).toBe('b')
    expect(await trained({ assistant: true })).toBe('c<eos>')
    expect(await trained({ tool: true })).toBe('d')
    expect(await trained({ user: true, assistant: true, tool: true, system: true })).toBe('bc<eos>d')
    // The only system token is the first, which nothing predicts.
    expect((await failure(() => trained({ system: true }))).message).toMatch(/none of the first 1 rows has a token to train .*system/)
  })

  it('end by eos where the template writes no end', async () => {
    const template = { text: '{% for m in messages %}{{ m.content }}{% endfor %}', file: 'plain.jinja' }
    const plain = createTemplateRenderer(tokenizer, { chatTemplate: template })
    const source = await documents(write('a.jsonl', lines([{ prompt: 'a=', completion: 'a' }])), { renderer: plain })
    const { ids = [], mask = [] } = source.read({ epoch: 0, row: 0 }) ?? {}
    expect(tokenizer.decode(ids)).toBe('a=a<eos>')
    expect([...mask]).toEqual([0, 0, 1, 1])
  })

  it('longer than a row are cut to it, and left out where nothing to train is left', async () => {
    const long = { prompt: 'a=', completion: 'abcdef' }
    const prompt = { prompt: 'abcdefgh=', completion: 'a' }
    const source = await documents(write('a.jsonl', lines([long, prompt])), { seqLen: 5 })
    expect(source.read({ epoch: 0, row: 0 })).toMatchObject({ cut: 4, mask: Uint8Array.of(0, 0, 1, 1, 1) })
    expect(source.read({ epoch: 0, row: 1 })).toBeUndefined()
    const loader = createDataLoader({ source, seqLen: 5, batchSize: 3, profile: 'fp32', epochs: 1 })
    expect(loader.next()).toMatchObject({ documents: 1, skippedDocuments: 1, cutTokens: 4, lossTokens: 3 })
    expect(loader.next()).toBeUndefined()
  })

  it('that are wrong are all named, with file and line, before the run', async () => {
    const file = write(
      'a.jsonl',
      [
        '{"prompt": "a=", "completion": "a"}',
        '',
        '{"prompt": ',
        '{"text": "a"}',
        '{"prompt": "a="}',
        '[1]',
        '{"messages": [{"role": "critic", "content": "a"}]}',
        '{"messages": []}',
        '{"prompt": "a z=", "completion": "a"}',
        '{"prompt": "a", "completion": "b", "tools": "{"}',
      ].join('\n'),
    )
    const error = await failure(() => documents(file))
    expect(error.code).toBe('DATA_INVALID')
    expect(error.problems.map(({ source }) => (source?.kind === 'file' ? source.line : 0))).toEqual([3, 4, 5, 6, 7, 8, 9, 10])
    expect(error.problems.map(({ message }) => message.slice(file.length))).toEqual([
      expect.stringMatching(/^:3: the row is no JSON/),
      ':4: the row has neither messages nor prompt and completion; its keys are text',
      ':5: the row has no completion; its keys are prompt',
      ':6: the row is no object',
      expect.stringMatching(/^:7: messages\.0\.role/),
      ':8: the row has no message',
      expect.stringMatching(/^:9: .* has no token for " ", "z"/),
      expect.stringMatching(/^:10: tools is no JSON/),
    ])
    const one = await failure(() => documents(write('b.jsonl', 'no')))
    expect(one.message).toMatch(/b\.jsonl:1: the row is no JSON/)
  })
})

describe('batches', () => {
  const load = async (more: Partial<DataLoaderOptions> & { readonly shuffle?: boolean; readonly count?: number } = {}) => {
    const { shuffle = true, count = 100, ...options } = more
    const source = await documents(write('a.jsonl', lines(rowsOf(count))), { shuffle })
    return createDataLoader({ source, seqLen: 64, batchSize: 2, profile: 'fp32', ...options })
  }
  const drain = (loader: { next(): DataBatch | undefined }, count = Number.POSITIVE_INFINITY) => {
    const batches: DataBatch[] = []
    for (let batch = loader.next(); batch !== undefined; batch = batches.length < count ? loader.next() : undefined) batches.push(batch)
    return batches.slice(0, count)
  }

  it('hold each document of a pass once, whole, in rows that are not too long', async () => {
    const batches = drain(await load({ epochs: 1 }))
    const texts = batches.flatMap(({ microBatches }) => textsOf(microBatches))
    expect(texts.toSorted()).toEqual(
      rowsOf(100)
        .map(({ prompt, completion }) => `${prompt}${completion}<eos>`)
        .toSorted(),
    )
    for (const { microBatches } of batches) {
      for (const { inputIds, sequenceLengths, positionIds, mask, trainingMode } of microBatches) {
        // A document has 8 tokens, so 8 of them fill a row.
        expect(inputIds.length).toBeLessThanOrEqual(64)
        expect(sequenceLengths.every((length) => length === 8)).toBe(true)
        expect([...positionIds]).toEqual(sequenceLengths.flatMap((length) => Array.from({ length }, (_, index) => index)))
        expect(mask.reduce((total, flag) => total + flag, 0)).toBe(4 * sequenceLengths.length)
        expect(trainingMode).toBe('sft')
      }
    }
    expect(batches.map(({ documents }) => documents)).toEqual([16, 16, 16, 16, 16, 16, 4])
  })

  it('begin a new row with the document that does not fit, and close one that is full', async () => {
    const source = await documents(write('a.jsonl', lines([row(0), row(1), row(2, 1), row(3)])))
    const loader = createDataLoader({ source, seqLen: 20, batchSize: 1, profile: 'fp32', epochs: 1 })
    expect(drain(loader).map(({ microBatches }) => microBatches[0]?.sequenceLengths)).toEqual([
      [8, 8],
      [6, 8],
    ])
  })

  it('are joined and padded as asked', async () => {
    const [batch] = drain(await load({ batchSize: 4, microBatchSize: 2, padToMultipleOf: 12, count: 20, epochs: 1 }))
    expect(batch?.microBatches.map(({ inputIds }) => inputIds.length)).toEqual([132, 36])
    expect(batch?.microBatches[0]?.sequenceLengths).toEqual([...new Array(16).fill(8), 4])
  })

  it('come in another order in each pass and for each seed, and in that of the file without shuffling', async () => {
    const inOrder = drain(await load({ shuffle: false, epochs: 1 })).flatMap(({ microBatches }) => textsOf(microBatches))
    expect(inOrder).toEqual(rowsOf(100).map(({ prompt, completion }) => `${prompt}${completion}<eos>`))
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), fc.integer(), fc.nat(1000), (rows, seed, epoch) => {
        const order = shuffledOrder(rows, seed, epoch)
        expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: rows }, (_, index) => index))
        expect(shuffledOrder(rows, seed, epoch)).toEqual(order)
        if (rows > 20)
          for (const other of [shuffledOrder(rows, seed, epoch + 1), shuffledOrder(rows, seed + 1, epoch)]) expect(other).not.toEqual(order)
      }),
    )
  })

  it('go on after any batch as if nothing had happened, over the end of a pass too', async () => {
    const whole = drain(await load({ count: 37 }), 12)
    for (const stop of [1, 2, 3, 5, 9]) {
      const position: DataPosition = JSON.parse(JSON.stringify(whole[stop - 1]?.position))
      expect(drain(await load({ count: 37, position }), 12 - stop)).toEqual(whole.slice(stop))
    }
    const positions = whole.map(({ position: { epoch, row: at } }) => epoch * 37 + at)
    expect(positions.every((at, index) => index === 0 || at > (positions[index - 1] ?? 0))).toBe(true)
  })

  it('refuse a position that the data does not have', async () => {
    const error = await failure(() => load({ position: { epoch: 0, row: 100 } }))
    expect([error.code, error.message]).toEqual(['DATA_INVALID', expect.stringMatching(/row 100 of pass 0, and the data has 100 rows/)])
  })

  it('end in an error where a pass has nothing to train', async () => {
    const source = { rows: 3, read: () => undefined, close: () => undefined }
    const loader = createDataLoader({ source, seqLen: 8, batchSize: 1, profile: 'fp32' })
    expect((await failure(() => loader.next())).message).toMatch(/whole pass over 3 rows/)
  })
})

describe('made-up documents', () => {
  const base = { vocabularySize: 10, seqLen: 6 }
  const read = (options: Parameters<typeof createFakeDocuments>[0]) => {
    const source = createFakeDocuments(options)
    return Array.from({ length: 30 }, (_, number) => source.read({ epoch: 0, row: number }))
  }

  it('count up, or are random, of one length or of several, the same each time', () => {
    const fixed = read({ ...base, length: 'fixed', input_ids: 'increasing' })
    expect([...(fixed[3]?.ids ?? [])]).toEqual([3, 3, 3, 3, 3, 3])
    expect([...(fixed[13]?.ids ?? [])]).toEqual([3, 3, 3, 3, 3, 3])
    expect([...(fixed[3]?.mask ?? [])]).toEqual([0, 1, 1, 1, 1, 1])
    const random = read({ ...base, length: 'variable', input_ids: 'random' })
    expect(random).toEqual(read({ ...base, length: 'variable', input_ids: 'random' }))
    expect(random).not.toEqual(read({ ...base, length: 'variable', input_ids: 'random', seed: 1 }))
    expect(new Set(random.map((document) => document?.ids.length))).toEqual(new Set([2, 3, 4, 5, 6]))
    expect(random.every((document) => document?.ids.every((id) => id < 10))).toBe(true)
  })

  it('are packed like others', () => {
    const loader = createDataLoader({
      source: createFakeDocuments({ ...base, length: 'fixed', input_ids: 'random' }),
      seqLen: 6,
      batchSize: 3,
      profile: 'fp32',
    })
    expect(loader.next()).toMatchObject({ documents: 3, tokens: 18, lossTokens: 15, position: { epoch: 0, row: 3 } })
  })
})
