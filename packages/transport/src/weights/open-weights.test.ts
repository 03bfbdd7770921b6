import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { FileLayer } from '@trilithon/core'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { fails } from '../../test/fails.ts'
import { elementOf, expectContent, expectVersion, fakeRun, fill, largeTensors } from '../../test/fake-weights.ts'
import { transportFiles } from '../files/transport-files.ts'
import { openWeights } from './open-weights.ts'
import { hasReader } from './reader-lease.ts'
import { continueChecksum, formatChecksum, type WeightsManifest } from './weights-manifest.ts'
import { createWeightsPublisher } from './weights-publisher.ts'

const publishOne = async (memoryBacked: 'auto' | 'never') => {
  const run = fakeRun({ memoryBacked, tensors: largeTensors })
  return { ...run, ...(await run.publisher.publish(1, fill(1))) }
}

describe.for(['auto', 'never'] as const)('memory-backed: %s', (memoryBacked) => {
  test('what was published is read, at any place', async () => {
    const { folder, isMemoryBacked } = await publishOne(memoryBacked)
    expect(isMemoryBacked).toBe(memoryBacked === 'auto')
    expect(existsSync(join(folder, 'LOCATION'))).toBe(isMemoryBacked)
    expect(existsSync(join(folder, 'weights.bin'))).toBe(!isMemoryBacked)
    expectVersion(folder, 1)
    const weights = openWeights(folder)
    expect(weights.manifest.profile).toBe('fp32')
    fc.assert(
      fc.property(fc.constantFrom('large', 'half'), fc.nat(), fc.nat(40), (name, start, length) => {
        const first = start % (name === 'large' ? 300_000 : 35)
        const into = new Float32Array(name === 'large' ? length : Math.min(length, 35 - first))
        weights.read(name, first, into)
        expect([...into]).toEqual(Array.from(into, (_, index) => elementOf(1, name, first + index)))
      }),
    )
    weights.release()
  })

  test('the manifest names every tensor with its place, aligned', async () => {
    const { folder, bytes } = await publishOne(memoryBacked)
    const { tensors } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as WeightsManifest
    expect(tensors).toMatchObject([
      { name: 'large', dtype: 'F32', shape: [3, 100_003], layout: 'row-major', offset: 0, bytes: 1_200_036 },
      { name: 'none', offset: 1_200_064, bytes: 0, checksum: 'crc32:00000000' },
      { name: 'half', dtype: 'BF16', offset: 1_200_064, bytes: 70 },
      { name: 'one', shape: [], offset: 1_200_192, bytes: 4 },
    ])
    expect(bytes).toBe(1_200_196)
  })

  test('a reader holds a lease until it releases', async () => {
    const { folder } = await publishOne(memoryBacked)
    const weights = openWeights(folder)
    expect(hasReader(folder, transportFiles)).toBe(true)
    weights.release()
    weights.release()
    expect(hasReader(folder, transportFiles)).toBe(false)
    expect(() => weights.verify('one')).toThrow(fails('INVARIANT_BROKEN', /read after it was released/))
  })
})

test('the lease is there before the marker is read, the data is opened behind both', async () => {
  const { folder } = await publishOne('never')
  const opened: string[] = []
  const files: FileLayer = {
    ...transportFiles,
    open(path, mode) {
      opened.push(relative(folder, path))
      return transportFiles.open(path, mode)
    },
  }
  openWeights(folder, { files }).release()
  expect(opened).toEqual([expect.stringMatching(/^readers\/\d+-/), 'STABLE', 'manifest.json', 'weights.bin'])
})

test('the checksum is CRC-32', () => {
  // The check value of the algorithm's catalogues.
  expect(formatChecksum(continueChecksum(new TextEncoder().encode('123456789')))).toBe('crc32:cbf43926')
})

test('a tensor that is given transposed is read as it was given', async () => {
  const stored = Float32Array.from({ length: 6 }, (_, index) => index)
  const run = fakeRun({ tensors: [{ name: 'w', dtype: 'F32', shape: [3, 2] }] })
  const { folder } = await run.publisher.publish(1, (_name, first, into) => {
    for (let index = 0; index < into.length; index++) into[index] = stored[((first + index) % 2) * 3 + ((first + index) >> 1)] as number
  })
  const weights = openWeights(folder)
  const into = new Float32Array(6)
  weights.read('w', 0, into)
  weights.verify('w')
  weights.release()
  expect([...into]).toEqual([0, 3, 1, 4, 2, 5])
})

describe('refused', () => {
  let folder: string
  /** What was published, before it is damaged. */
  let files: { manifest: string; data: Buffer }
  beforeEach(async () => {
    const run = fakeRun({ memoryBacked: 'never', tensors: largeTensors })
    folder = (await run.publisher.publish(1, fill(1))).folder
    files = { manifest: readFileSync(join(folder, 'manifest.json'), 'utf8'), data: readFileSync(join(folder, 'weights.bin')) }
  })
  /** A manifest that its marker confirms. */
  const writeManifest = (text: string) => {
    writeFileSync(join(folder, 'manifest.json'), text)
    writeFileSync(join(folder, 'STABLE'), formatChecksum(continueChecksum(new TextEncoder().encode(text))))
  }
  const changeManifest = (change: (manifest: { version: number; profile?: unknown; tensors: Record<string, unknown>[] }) => unknown) => {
    const manifest = JSON.parse(files.manifest)
    const changed = change(manifest)
    writeManifest(JSON.stringify(changed ?? manifest))
  }
  const changeTensor = (index: number, change: object) =>
    changeManifest(({ tensors }) => void Object.assign(tensors[index] as object, change))

  test.for<[string, () => void, RegExp]>([
    ['no marker', () => rmSync(join(folder, 'STABLE')), /step_1: there is no marker STABLE/],
    ['no manifest', () => rmSync(join(folder, 'manifest.json')), /the manifest cannot be read: ENOENT/],
    ['a manifest that is no JSON', () => writeManifest('{"version": 1'), /the manifest is not JSON/],
    ['a manifest that is a list', () => writeManifest('[]'), /the manifest is not an object/],
    [
      'a manifest that was changed',
      () => writeFileSync(join(folder, 'manifest.json'), files.manifest.replace('fp32', 'fp16')),
      /the manifest has the checksum crc32:[0-9a-f]{8}, the marker STABLE says "crc32:[0-9a-f]{8}"/,
    ],
    ['an empty marker', () => writeFileSync(join(folder, 'STABLE'), ''), /the marker STABLE says ""/],
    ['another version', () => changeManifest((manifest) => ({ ...manifest, version: 2 })), /of version 2, the folder of version 1/],
    ['no profile', () => changeManifest((manifest) => ({ ...manifest, profile: '' })), /no profile/],
    ['no tensors', () => changeManifest(({ version, profile }) => ({ version, profile })), /no list of tensors/],
    [
      'a tensor that is a text',
      () => changeManifest(({ tensors, ...rest }) => ({ ...rest, tensors: [...tensors, 'x'] })),
      /tensor 4 of the manifest is not an object/,
    ],
    ['a tensor without a name', () => changeTensor(1, { name: '' }), /tensor 1 of the manifest has no name/],
    ['a tensor twice', () => changeTensor(1, { name: 'large' }), /tensor large is in the manifest twice/],
    ['an unknown dtype', () => changeTensor(0, { dtype: 'F64' }), /tensor large has the unknown dtype F64/],
    ['a dtype of the language', () => changeTensor(0, { dtype: 'toString' }), /unknown dtype toString/],
    ['a shape that is none', () => changeTensor(0, { shape: [3, -1] }), /tensor large has no shape/],
    ['an unknown layout', () => changeTensor(0, { layout: 'tiled' }), /tensor large has the unknown layout tiled/],
    ['an offset between lines', () => changeTensor(2, { offset: 1_200_066 }), /tensor half lies at 1200066, which is no multiple of 64/],
    ['an offset before the file', () => changeTensor(2, { offset: -64 }), /tensor half lies at -64/],
    [
      'a size that is not that of the shape',
      () => changeTensor(0, { bytes: 4 }),
      /tensor large has 4 bytes, its shape \[3, 100003\] F32 has 1200036/,
    ],
    ['no checksum', () => changeTensor(0, { checksum: 'sha256:00' }), /tensor large has no checksum/],
    ['tensors that overlap', () => changeTensor(3, { offset: 1_200_064 }), /tensors (half and one|one and half) overlap/],
    ['a tensor outside the data', () => changeTensor(3, { offset: 1_200_256 }), /has 1200196 bytes, its tensors 1200260/],
    ['data cut short', () => truncateSync(join(folder, 'weights.bin'), 1_200_195), /has 1200195 bytes, its tensors 1200196/],
    ['data that is too long', () => truncateSync(join(folder, 'weights.bin'), 1_200_197), /has 1200197 bytes/],
    ['no data', () => rmSync(join(folder, 'weights.bin')), /the data file .*weights\.bin cannot be opened: ENOENT/],
    [
      'a location that leads nowhere',
      () => writeFileSync(join(folder, 'LOCATION'), '/nowhere/at/all'),
      /the data file \/nowhere\/at\/all cannot be opened/,
    ],
    ['no room for a lease', () => rmSync(join(folder, 'readers'), { recursive: true }), /no lease can be taken/],
  ])('%s', ([, damage, message]) => {
    damage()
    expect(() => openWeights(folder)).toThrow(fails('WEIGHTS_INVALID', message))
    // And nothing is held.
    expect(hasReader(folder, transportFiles)).toBe(false)
  })

  test('a folder that is not named after a version, or is not there', async () => {
    renameSync(folder, `${folder}.x`)
    expect(() => openWeights(`${folder}.x`)).toThrow(fails('WEIGHTS_INVALID', /not named after a version/))
    expect(() => openWeights(folder)).toThrow(fails('WEIGHTS_INVALID', /no marker/))
  })

  test('a tensor that is missing, and elements that it lacks', async () => {
    const weights = openWeights(folder)
    expect(() => weights.read('other', 0, new Float32Array(1))).toThrow(fails('WEIGHTS_INVALID', /there is no tensor other/))
    expect(() => weights.verify('other')).toThrow(fails('WEIGHTS_INVALID', /there is no tensor other/))
    for (const [first, length] of [
      [0, 36],
      [35, 1],
      [-1, 1],
      [0.5, 1],
    ] as const)
      expect(() => weights.read('half', first, new Float32Array(length))).toThrow(
        fails('WEIGHTS_INVALID', /tensor half has 35 elements, not/),
      )
    weights.release()
  })

  test('data that is cut short while it is read', async () => {
    const weights = openWeights(folder)
    truncateSync(join(folder, 'weights.bin'), 1_200_193)
    expect(() => weights.read('one', 0, new Float32Array(1))).toThrow(fails('WEIGHTS_INVALID', /ends 3 bytes before tensor one does/))
    weights.release()
  })

  test('any change of any byte of any tensor is found, in that tensor alone', async () => {
    const weights = openWeights(folder)
    const data = join(folder, 'weights.bin')
    const fd = openSync(data, 'r+')
    const places = weights.manifest.tensors.filter(({ bytes }) => bytes > 0)
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.nat(), fc.integer({ min: 1, max: 255 }), ({ name, offset, bytes }, place, flip) => {
        const at = offset + (place % bytes)
        const before = files.data[at] as number
        writeSync(fd, Uint8Array.of(before ^ flip), 0, 1, at)
        try {
          for (const tensor of places) {
            if (tensor.name === name) expect(() => weights.verify(name)).toThrow(fails('WEIGHTS_INVALID', /has the checksum/))
            else weights.verify(tensor.name)
          }
        } finally {
          writeSync(fd, Uint8Array.of(before), 0, 1, at)
        }
      }),
      { numRuns: 150 },
    )
    closeSync(fd)
    expectContent(weights, 1)
    weights.release()
  })
})

test('tensors that no reader would take are not served', () => {
  const options = { broadcasts: '/nowhere', profile: 'fp32', memoryBacked: 'never', keep: 1 } as const
  const tensor = { name: 'a', dtype: 'F32', shape: [1] } as const
  expect(() => createWeightsPublisher({ ...options, tensors: [tensor, tensor] })).toThrow(
    fails('WEIGHTS_INVALID', /tensor a is in the manifest twice/),
  )
  expect(() => createWeightsPublisher({ ...options, tensors: [{ ...tensor, shape: [1.5] }] })).toThrow(fails('WEIGHTS_INVALID', /no shape/))
})
