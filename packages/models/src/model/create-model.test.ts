import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { liveTensors, toArray } from '@trilithon/tensor'
import { tinyFamilies, tinyModelJson } from '@trilithon/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { tinyConfig } from '../../test/tiny-models.ts'
import { nodeFiles } from '../files/node-files.ts'
import { createModel, loadModel, reloadWeights, saveModel } from './create-model.ts'
import type { Model } from './model.ts'

/** The disk itself is not waited for: that the writer asks for it is tested elsewhere, and costs seconds where others write too. */
const files: FileLayer = {
  ...nodeFiles,
  open: (path, mode) => {
    const file = nodeFiles.open(path, mode)
    return Object.assign(Object.create(file) as typeof file, {
      read: file.read.bind(file),
      write: file.write.bind(file),
      close: file.close.bind(file),
      sync: () => undefined,
    })
  },
  rename: renameSync,
}

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-model-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
  expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 })
})

/** A digest of each weight: two maps are equal where all bits are. */
const bitsOf = (model: Model) =>
  new Map(
    [...model.weights].map(([name, { value }]) => [
      name,
      createHash('sha256')
        .update(new Uint8Array((toArray(value) as Float32Array).buffer))
        .digest('hex'),
    ]),
  )

const failure = (run: () => unknown): TrilithonError => {
  try {
    run()
  } catch (error) {
    if (TrilithonError.is(error)) return error
    throw error
  }
  throw new Error('it was taken')
}

describe.each(tinyFamilies)('%s', (family) => {
  const configText = JSON.stringify(tinyModelJson[family])

  test('what is saved is loaded bit-equal, and saved again in the same bytes', () => {
    const model = createModel(tinyConfig(family), { seed: 1, configText })
    saveModel(model, join(folder, 'a'), { files, documents: { 'tokenizer.json': '{}' } })
    const again = loadModel(join(folder, 'a'))
    expect(again.report.ignored).toEqual([])
    expect(again.model.config).toEqual(model.config)
    expect(bitsOf(again.model)).toEqual(bitsOf(model))
    saveModel(again.model, join(folder, 'b'), { files })
    for (const file of ['config.json', 'model.safetensors'])
      expect(readFileSync(join(folder, 'b', file)).equals(readFileSync(join(folder, 'a', file)))).toBe(true)
    const other = createModel(tinyConfig(family), { seed: 2 })
    expect(bitsOf(other)).not.toEqual(bitsOf(model))
    other.packProjections()
    reloadWeights(other, join(folder, 'a'))
    expect(bitsOf(other)).toEqual(bitsOf(model))
    for (const each of [model, again.model, other]) each.dispose()
  })

  test('starts from (seed, name) alone', () => {
    const model = createModel(tinyConfig(family), { seed: 1 })
    const deeper = createModel(tinyConfig(family, { num_hidden_layers: 4, indexer_types: null, mlp_only_layers: [0] }), { seed: 1 })
    const bytes = bitsOf(deeper)
    // Projections into the residual stream begin smaller in deeper models.
    for (const [name, value] of bitsOf(model)) if (!/(o_proj|down_proj|indexer)/.test(name)) expect(bytes.get(name)).toEqual(value)
    model.dispose()
    deeper.dispose()
  })
})

test('a golden checkpoint is written back in the bytes of its tensors', () => {
  const { model } = loadModel(fileURLToPath(new URL('../__fixtures__/qwen3', import.meta.url)))
  saveModel(model, join(folder, 'copy'), { files })
  const copy = loadModel(join(folder, 'copy')).model
  expect(bitsOf(copy)).toEqual(bitsOf(model))
  model.dispose()
  copy.dispose()
})

describe('a folder that is no model', () => {
  const tiny = (config: object = {}) => {
    const model = createModel(tinyConfig('qwen3'), { seed: 1, configText: JSON.stringify({ ...tinyModelJson.qwen3, ...config }) })
    saveModel(model, join(folder, 'm'), { files })
    model.dispose()
    return join(folder, 'm')
  }

  test('is missing, or has no configuration', () => {
    expect(failure(() => loadModel(join(folder, 'none')))).toMatchObject({
      code: 'MODEL_NOT_FOUND',
      path: join(folder, 'none/config.json'),
    })
    mkdirSync(join(folder, 'none'))
    writeFileSync(join(folder, 'none/config.json'), '{')
    expect(failure(() => loadModel(join(folder, 'none')))).toMatchObject({ code: 'MODEL_CONFIG_INVALID' })
    writeFileSync(join(folder, 'none/config.json'), '{"model_type": "llama"}')
    expect(failure(() => loadModel(join(folder, 'none')))).toMatchObject({ code: 'MODEL_UNSUPPORTED' })
  })

  test('has weights of another configuration: every tensor is named, and nothing is kept', () => {
    const error = failure(() => loadModel(tiny({ num_hidden_layers: 3, vocab_size: 21 })))
    expect(error).toMatchObject({ code: 'CHECKPOINT_INVALID', path: join(folder, 'm') })
    expect(error.details).toMatchObject({
      faults: expect.arrayContaining([
        'model.layers.2.mlp.up_proj.weight is missing',
        'model.embed_tokens.weight has shape [19, 12], the model wants [21, 12]',
      ]),
    })
  })

  test('has a weight that is NaN: the tensor and the element are named', () => {
    const path = tiny()
    const file = join(path, 'model.safetensors')
    const bytes = readFileSync(file)
    bytes.writeUInt32LE(0x7fc00000, bytes.length - 8)
    writeFileSync(file, bytes)
    expect(failure(() => loadModel(path))).toMatchObject({
      code: 'CHECKPOINT_INVALID',
      message: expect.stringContaining('element 10 of model.norm.weight is NaN'),
    })
  })

  test('cannot be written: what was there stays', () => {
    const path = tiny()
    const { model } = loadModel(path)
    const before = bitsOf(model)
    expect(failure(() => saveModel(model, path))).toMatchObject({ code: 'CHECKPOINT_WRITE_FAILED' })
    const full = { ...nodeFiles, open: (file: string, mode: 'r' | 'w') => fullAfter(nodeFiles.open(file, mode)) }
    expect(failure(() => saveModel(model, join(folder, 'full'), { files: full }))).toMatchObject({
      code: 'CHECKPOINT_WRITE_FAILED',
      message: expect.stringContaining('the disk is full'),
    })
    expect(bitsOf(model)).toEqual(before)
    model.configText = null
    expect(failure(() => saveModel(model, join(folder, 'other')))).toMatchObject({ code: 'MODEL_CONFIG_INVALID' })
    model.dispose()
  })
})

function fullAfter(file: ReturnType<typeof nodeFiles.open>): ReturnType<typeof nodeFiles.open> {
  let writes = 0
  return Object.create(file, {
    size: { get: () => file.size },
    read: { value: (into: Uint8Array, position: number) => file.read(into, position) },
    write: {
      value: (bytes: Uint8Array) => {
        if (++writes > 2) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
        file.write(bytes)
      },
    },
    sync: { value: () => file.sync() },
    close: { value: () => file.close() },
  })
}
