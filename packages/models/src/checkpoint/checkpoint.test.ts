import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrilithonError } from '@trilithon/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseModelConfig } from '../config/parse-model-config.ts'
import { nodeFiles } from '../files/node-files.ts'
import { modelWeights } from '../model-weights.ts'
import { elementsOf } from '../weight-spec.ts'
import { loadWeights } from './load-weights.ts'
import { openCheckpoint } from './open-checkpoint.ts'
import { encodeHeader } from './safetensors-header.ts'
import { writeCheckpoint } from './write-checkpoint.ts'

const golden = (family: string) => fileURLToPath(new URL(`../__fixtures__/${family}`, import.meta.url))
const families = ['qwen3', 'qwen3_moe', 'glm_moe_dsa']

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-checkpoint-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function readModel(path: string) {
  const text = readFileSync(join(path, 'config.json'), 'utf8')
  const config = parseModelConfig(JSON.parse(text), join(path, 'config.json'))
  const values = new Map([...modelWeights(config)].map(({ name, shape }) => [name, new Float32Array(elementsOf(shape))]))
  const checkpoint = openCheckpoint(path, nodeFiles)
  try {
    const report = loadWeights(checkpoint, config, (spec, first, piece) => values.get(spec.name)?.set(piece, first))
    return { config, text, values, report }
  } finally {
    checkpoint.close()
  }
}

function writeModel(path: string, model: ReturnType<typeof readModel>, more: { dtype?: 'F32' | 'BF16'; maxShardBytes?: number } = {}) {
  writeCheckpoint(
    path,
    [...modelWeights(model.config)],
    (spec, first, into) => into.set((model.values.get(spec.name) ?? new Float32Array()).subarray(first, first + into.length)),
    { files: nodeFiles, dtype: 'F32', documents: { 'config.json': model.text }, ...more },
  )
}

const isSame = (a: Float32Array, b = new Float32Array()) => Buffer.from(a.buffer).equals(Buffer.from(b.buffer))

describe('a checkpoint of Hugging Face', () => {
  it.each(families)('%s is read and written back bit-equal, tensor by tensor, in one file and in many', (family) => {
    const model = readModel(golden(family))
    const sizes = { one: 1e9, many: 500_000, ...(family === 'qwen3' ? { 'one per tensor': 1 } : {}) }
    for (const [name, maxShardBytes] of Object.entries(sizes)) {
      const path = join(folder, name)
      writeModel(path, model, { maxShardBytes })
      const shards = readdirSync(path).filter((file) => file.endsWith('.safetensors'))
      expect(shards.length > 1).toBe(name !== 'one')
      for (const [tensor, values] of readModel(path).values) expect(isSame(values, model.values.get(tensor)), tensor).toBe(true)
      const original = openCheckpoint(golden(family), nodeFiles)
      const written = openCheckpoint(path, nodeFiles)
      expect([...written.tensors.keys()].sort()).toEqual([...original.tensors.keys()].sort())
      for (const { name: tensor, shape } of original.tensors.values())
        expect(written.tensors.get(tensor)).toMatchObject({ shape, dtype: 'F32' })
      original.close()
      written.close()
    }
  })

  it('stores bfloat16 rounded to nearest even, and reads it exactly', () => {
    const model = readModel(golden('qwen3'))
    const embedding = model.values.get('model.embed_tokens.weight') ?? new Float32Array()
    const words = new Uint32Array(embedding.buffer)
    words.set([0x3f808000, 0x3f818000, 0x3f808001, 0x80000000, 0x00000001, 0x7f7f0000])
    writeModel(join(folder, 'bf16'), model, { dtype: 'BF16' })
    const read = readModel(join(folder, 'bf16')).values.get('model.embed_tokens.weight') ?? new Float32Array()
    expect([...new Uint32Array(read.buffer).subarray(0, 6)]).toEqual([0x3f800000, 0x3f820000, 0x3f810000, 0x80000000, 0, 0x7f7f0000])
  })

  it('reads float16, subnormals and all', () => {
    const config = { ...JSON.parse(readFileSync(join(golden('qwen3'), 'config.json'), 'utf8')), num_hidden_layers: 1 }
    const parsed = parseModelConfig(config, 'c')
    const specs = [...modelWeights(parsed)]
    const halves = [0x0001, 0x03ff, 0x0400, 0x3c00, 0xc000, 0x7bff]
    const bytes = specs.map(
      ({ shape }) => new Uint8Array(new Uint16Array(elementsOf(shape)).fill(0x3c00).map((word, i) => halves[i] ?? word).buffer),
    )
    writeFileSync(
      join(folder, 'model.safetensors'),
      Buffer.concat([encodeHeader(specs.map(({ name, shape }) => ({ name, shape, dtype: 'F16' }))), ...bytes]),
    )
    const checkpoint = openCheckpoint(folder, nodeFiles)
    const seen: number[] = []
    loadWeights(checkpoint, parsed, (_, first, piece) => {
      if (first === 0 && seen.length === 0) seen.push(...piece.subarray(0, 6))
    })
    checkpoint.close()
    expect(seen).toEqual([2 ** -24, 1023 * 2 ** -24, 2 ** -14, 1, -2, 65504])
  })
})

describe('a checkpoint that is not sound', () => {
  const failure = (run: () => unknown): TrilithonError => {
    try {
      run()
    } catch (error) {
      if (TrilithonError.is(error)) return error
      throw error
    }
    throw new Error('it was read')
  }
  /** A copy of the golden qwen3 in which something is changed. */
  const damaged = (change: (bytes: Buffer, config: Record<string, unknown>) => Buffer): TrilithonError => {
    const config = JSON.parse(readFileSync(join(golden('qwen3'), 'config.json'), 'utf8'))
    const bytes = change(readFileSync(join(golden('qwen3'), 'model.safetensors')), config)
    mkdirSync(join(folder, 'm'), { recursive: true })
    writeFileSync(join(folder, 'm/config.json'), JSON.stringify(config))
    writeFileSync(join(folder, 'm/model.safetensors'), bytes)
    return failure(() => readModel(join(folder, 'm')))
  }
  const withHeader = (
    bytes: Buffer,
    change: (header: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>) => void,
  ): Buffer => {
    const length = Number(bytes.readBigUInt64LE(0))
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString())
    change(header)
    const json = Buffer.from(JSON.stringify(header))
    const prefix = Buffer.alloc(8)
    prefix.writeBigUInt64LE(BigInt(json.length))
    return Buffer.concat([prefix, json, bytes.subarray(8 + length)])
  }
  const norm = 'model.norm.weight'

  it.each<[string, (bytes: Buffer, config: Record<string, unknown>) => Buffer, string]>([
    ['truncated in the data', (bytes) => bytes.subarray(0, bytes.length - 4), 'truncated'],
    ['truncated in the header', (bytes) => bytes.subarray(0, 100), 'its header claims'],
    ['empty', () => Buffer.alloc(0), 'shorter than its own header'],
    ['of another format', () => Buffer.from('PK\u0003\u0004 this is a zip file of weights'), 'its header claims'],
    [
      'without JSON',
      (bytes) => {
        bytes[8] = 0x41
        return bytes
      },
      'not JSON',
    ],
    [
      'with a shape that its bytes do not have',
      (bytes) =>
        withHeader(bytes, (header) => {
          header[norm] = { ...header[norm], shape: [95] } as never
        }),
      `${norm} is F32 [95]`,
    ],
    [
      'with overlapping tensors',
      (bytes) =>
        withHeader(bytes, (header) => {
          header[norm] = { dtype: 'F32', shape: [96], data_offsets: [0, 384] }
        }),
      'overlaps',
    ],
    [
      'with a gap',
      (bytes) =>
        withHeader(bytes, (header) => {
          delete header[norm]
        }),
      'goes on for 384 bytes after its last tensor',
    ],
    [
      'with a malformed entry',
      (bytes) =>
        withHeader(bytes, (header) => {
          header[norm] = { dtype: 'F32', shape: [-1], data_offsets: [0, 1] }
        }),
      'malformed',
    ],
    [
      'with a tensor missing',
      (bytes) =>
        withHeader(bytes, (header) => {
          header.x = header[norm] as never
          delete header[norm]
        }),
      `${norm} is missing; x is not part of the model`,
    ],
    [
      'with another dtype',
      (bytes) =>
        withHeader(bytes, (header) => {
          header[norm] = { ...header[norm], dtype: 'I32' } as never
        }),
      `${norm} has dtype I32`,
    ],
    [
      'of another model',
      (bytes, config) => {
        config.vocab_size = 64
        return bytes
      },
      'has shape [128, 96], the model wants [64, 96]',
    ],
    [
      'with a NaN',
      (bytes) => {
        bytes.writeUInt32LE(0x7fc00000, bytes.length - 4)
        return bytes
      },
      'is NaN',
    ],
  ])('%s, is one error that names file and tensor', (_, change, text) => {
    const error = damaged(change)
    expect(error.code).toBe('CHECKPOINT_INVALID')
    expect(error.message).toContain(text)
    expect(error.message).toContain(join(folder, 'm'))
    expect(error.hint).toBeTruthy()
  })

  it('lists everything that does not fit, together', () => {
    const error = damaged((bytes, config) => {
      config.num_hidden_layers = 4
      config.head_dim = 16
      return bytes
    })
    expect(error.details).toMatchObject({ faults: expect.arrayContaining([expect.stringContaining('model.layers.3.mlp.up_proj.weight')]) })
    expect(error.message).toContain('and ')
  })

  it('checks the index against its files', () => {
    const model = readModel(golden('qwen3'))
    const path = join(folder, 'many')
    writeModel(path, model, { maxShardBytes: 100_000 })
    const index = join(path, 'model.safetensors.index.json')
    const good = JSON.parse(readFileSync(index, 'utf8'))
    const change = (map: Record<string, string>) =>
      writeFileSync(index, JSON.stringify({ ...good, weight_map: { ...good.weight_map, ...map } }))
    change({ [norm]: 'model-00001-of-00009.safetensors' })
    expect(failure(() => readModel(path)).message).toContain('is missing')
    change({ [norm]: '../secret.safetensors' })
    expect(failure(() => readModel(path)).message).toContain('not a file of this folder')
    change({ 'model.other': good.weight_map[norm] })
    expect(failure(() => readModel(path)).message).toContain('the index names model.other')
    writeFileSync(index, '[]')
    expect(failure(() => readModel(path)).message).toContain('it is no index')
  })

  it('does not write over a folder, and leaves nothing behind', () => {
    const model = readModel(golden('qwen3'))
    mkdirSync(join(folder, 'there'))
    expect(failure(() => writeModel(join(folder, 'there'), model))).toMatchObject({ code: 'CHECKPOINT_WRITE_FAILED' })
    expect(readdirSync(folder)).toEqual(['there'])
  })
})
