import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { failingTransport } from '../../test/failing-transport.ts'
import { fails } from '../../test/fails.ts'
import { expectContent, expectVersion, type FakeRun, fakeRun, fill } from '../../test/fake-weights.ts'
import { thisProcess } from '../files/process-identity.ts'
import { type TransportFiles, transportFiles } from '../files/transport-files.ts'
import { openWeights } from './open-weights.ts'
import { foreignLeaseMs } from './reader-lease.ts'
import { isStable, latestVersion } from './versions.ts'
import { versionFolder } from './weights-manifest.ts'

const foldersOf = ({ broadcasts }: FakeRun) => readdirSync(broadcasts).sort()
const deadPid = () => spawnSync(process.execPath, ['-e', '0']).pid

describe('what is kept', () => {
  test('the newest versions and those asked for', async () => {
    const run = fakeRun({ keep: 2 })
    for (const version of [1, 2, 3, 9, 10, 11]) await run.publisher.publish(version, fill(version))
    run.publisher.collect([2, 77])
    expect(foldersOf(run)).toEqual(['step_10', 'step_11', 'step_2'])
    for (const version of [2, 10, 11]) expectVersion(versionFolder(run.broadcasts, version), version)
    // One file is spare, the others are gone.
    expect(readdirSync(run.memoryFolder)).toHaveLength(4)
  })

  test('the newest one always', async () => {
    const run = fakeRun({ keep: 0 })
    await run.publisher.publish(1, fill(1))
    run.publisher.collect([])
    expectVersion(versionFolder(run.broadcasts, 1), 1)
  })

  test('a version is published once, and after it was refused it is as it was', async () => {
    const run = fakeRun()
    await run.publisher.publish(1, fill(1))
    await expect(run.publisher.publish(1, fill(2))).rejects.toThrow(fails('WEIGHTS_INVALID', /step_1: the version is there already/))
    expectVersion(versionFolder(run.broadcasts, 1), 1)
  })

  test('a version on which the weights fail leaves nothing', async () => {
    const run = fakeRun()
    await run.publisher.publish(1, fill(1))
    const broken = () => {
      throw Object.assign(new Error('no such parameter'), { code: 'ERR_FAKE' })
    }
    await expect(run.publisher.publish(2, broken)).rejects.toThrow('no such parameter')
    expect(foldersOf(run)).toEqual(['step_1'])
    expect(readdirSync(run.memoryFolder)).toHaveLength(1)
    await run.publisher.publish(2, fill(2))
    expectVersion(versionFolder(run.broadcasts, 2), 2)
  })
})

describe('files in memory', () => {
  test('are written again once nobody reads them, and the reader of an old version keeps its own', async () => {
    const run = fakeRun()
    const { publisher, broadcasts } = run
    await publisher.publish(1, fill(1))
    const weights = openWeights(versionFolder(broadcasts, 1))
    await publisher.publish(2, fill(2))
    publisher.collect([])
    expect(foldersOf(run)).toEqual(['step_1', 'step_2'])
    expect(await publisher.publish(3, fill(3))).toMatchObject({ isReused: false })
    expectContent(weights, 1)
    weights.release()
    publisher.collect([])
    expect(foldersOf(run)).toEqual(['step_3'])
    const paths = readdirSync(run.memoryFolder)
    expect(await publisher.publish(4, fill(4))).toMatchObject({ isMemoryBacked: true, isReused: true })
    expectVersion(versionFolder(broadcasts, 4), 4)
    expectVersion(versionFolder(broadcasts, 3), 3)
    expect(readdirSync(run.memoryFolder)).toEqual(paths)
  })

  test('take at most half of what is free, else the disk has them', async () => {
    const bytes = 1412
    const withFree = (free: number): TransportFiles => ({ ...transportFiles, freeBytes: () => free })
    for (const [free, isMemoryBacked] of [
      [2 * bytes, true],
      [2 * bytes - 1, false],
    ] as const) {
      const run = fakeRun({ files: withFree(free) })
      expect(await run.publisher.publish(1, fill(1))).toMatchObject({ isMemoryBacked, bytes })
      expectVersion(versionFolder(run.broadcasts, 1), 1)
    }
    const run = fakeRun({ memoryFolder: '/nowhere/at/all' })
    expect(await run.publisher.publish(1, fill(1))).toMatchObject({ isMemoryBacked: false })
  })

  test('go with their publisher, and what is open stays readable; versions on the disk stay', async () => {
    const run = fakeRun({ keep: 2 })
    for (const version of [1, 2, 3]) await run.publisher.publish(version, fill(version))
    run.publisher.collect([])
    await run.restart({ memoryBacked: 'never' }).publish(4, fill(4))
    const weights = openWeights(versionFolder(run.broadcasts, 3))
    run.publisher.dispose()
    run.publisher.dispose()
    expect(readdirSync(run.memoryFolder)).toEqual([])
    expect(foldersOf(run)).toEqual(['step_4'])
    expectContent(weights, 3)
    weights.release()
  })
})

describe('leases', () => {
  /** A version with the lease of somebody, and a newer one; whether the older one is kept. */
  const isKept = async (text: string, ageMs = 0) => {
    const run = fakeRun()
    await run.publisher.publish(1, fill(1))
    const lease = join(versionFolder(run.broadcasts, 1), 'readers', '1-x')
    writeFileSync(lease, text)
    const taken = new Date(Date.now() - ageMs)
    utimesSync(lease, taken, taken)
    await run.publisher.publish(2, fill(2))
    run.publisher.collect([])
    return foldersOf(run).includes('step_1')
  }
  const self = thisProcess()

  test('of this process counts, however old it is', async () => {
    expect(await isKept(JSON.stringify(self), 100 * foreignLeaseMs)).toBe(true)
  })

  test('of a process that ended does not count, nor that of one whose number was given again', async () => {
    expect(await isKept(JSON.stringify({ ...self, pid: deadPid() }))).toBe(false)
    expect(await isKept(JSON.stringify({ ...self, started: '1' }))).toBe(false)
  })

  test('of another machine counts for its time', async () => {
    const foreign = JSON.stringify({ ...self, host: 'elsewhere', pid: deadPid() })
    expect(await isKept(foreign)).toBe(true)
    expect(await isKept(foreign, foreignLeaseMs + 60_000)).toBe(false)
  })

  test.for(['', '{"host":', '7', 'null', '{"host":1}'])('that cannot be read counts as one of another machine: %s', async (text) => {
    expect(await isKept(text)).toBe(true)
    expect(await isKept(text, foreignLeaseMs + 60_000)).toBe(false)
  })

  /** A layer that runs `meanwhile` before its n-th call, whatever that is. */
  const interrupted = (at: number, meanwhile: () => void): TransportFiles & { readonly calls: number } => {
    let calls = 0
    const count =
      <A extends unknown[], R>(run: (...args: A) => R) =>
      (...args: A): R => {
        calls += 1
        if (calls === at) meanwhile()
        return run(...args)
      }
    return {
      get calls() {
        return calls
      },
      open: count(transportFiles.open),
      openInPlace: count(transportFiles.openInPlace),
      makeFolder: count(transportFiles.makeFolder),
      rename: count(transportFiles.rename),
      move: count(transportFiles.move),
      remove: count(transportFiles.remove),
      exists: count(transportFiles.exists),
      list: count(transportFiles.list),
      freeBytes: transportFiles.freeBytes,
    }
  }

  test('a version that is collected and whose file is written again at any point of being opened is read whole, or not at all', async () => {
    let outcomes = ''
    for (let at = 1; at <= 20; at++) {
      const run = fakeRun()
      await run.publisher.publish(1, fill(1))
      await run.publisher.publish(2, fill(2))
      const waiting: Promise<unknown>[] = []
      const files = interrupted(at, () => {
        run.publisher.collect([])
        // All of the work is done within the call.
        waiting.push(run.publisher.publish(3, fill(3)))
      })
      try {
        const weights = openWeights(versionFolder(run.broadcasts, 1), { files })
        expectContent(weights, 1)
        weights.release()
        outcomes += 'r'
      } catch (error) {
        expect(error).toMatchObject({ code: 'WEIGHTS_INVALID' })
        outcomes += 'n'
      }
      await Promise.all(waiting)
      if (waiting.length > 0) expectVersion(versionFolder(run.broadcasts, 3), 3)
    }
    // Gone before the lease; safe once it is there.
    expect(outcomes).toMatch(/^n+r+$/)
  })

  test('a reader that opens at any point of a collection reads whole, or not at all', async () => {
    let outcomes = ''
    for (let at = 1; at <= 60; at++) {
      const opened: ReturnType<typeof openWeights>[] = []
      let isArmed = false
      let broadcasts = ''
      let armedAt = 0
      const files = interrupted(Number.NaN, () => undefined)
      const armed: TransportFiles = new Proxy(files, {
        get(target, key: keyof TransportFiles) {
          if (isArmed && key !== ('calls' as string)) {
            armedAt += 1
            if (armedAt === at) {
              try {
                opened.push(openWeights(versionFolder(broadcasts, 1)))
                outcomes += 'r'
              } catch (error) {
                expect(error).toMatchObject({ code: 'WEIGHTS_INVALID' })
                outcomes += 'n'
              }
            }
          }
          return target[key]
        },
      })
      const run = fakeRun({ files: armed })
      broadcasts = run.broadcasts
      await run.publisher.publish(1, fill(1))
      await run.publisher.publish(2, fill(2))
      isArmed = true
      run.publisher.collect([])
      await run.publisher.publish(3, fill(3))
      isArmed = false
      for (const weights of opened) {
        expectContent(weights, 1)
        weights.release()
      }
      expectVersion(versionFolder(broadcasts, 3), 3)
      // Whatever a reader held up goes with the next collection.
      run.publisher.collect([])
      expect(foldersOf(run)).toEqual(['step_3'])
    }
    expect(outcomes).toMatch(/^r+n+$/)
  })
})

describe('a failure at any call', () => {
  /** Three versions; the third is written into the file of the first. Gives the number of changes before the third. */
  const publishThrice = async (run: FakeRun, files: { readonly calls: number }) => {
    await run.publisher.publish(1, fill(1))
    await run.publisher.publish(2, fill(2))
    run.publisher.collect([])
    const before = files.calls
    await run.publisher.publish(3, fill(3))
    return before
  }

  describe.for(['auto', 'never'] as const)('memory-backed: %s', (memoryBacked) => {
    test.for(['ENOSPC', 'crash'] as const)('%s: the version is whole or not there', async (kind) => {
      const whole = failingTransport({ failAt: Number.POSITIVE_INFINITY, kind })
      const before = await publishThrice(fakeRun({ memoryBacked, files: whole }), whole)
      expect(whole.calls - before).toBeGreaterThan(10)
      for (let failAt = before + 1; failAt <= whole.calls; failAt++) {
        const files = failingTransport({ failAt, kind })
        const run = fakeRun({ memoryBacked, files })
        await expect(publishThrice(run, files)).rejects.toThrow(
          kind === 'ENOSPC' ? fails('OUTPUT_UNUSABLE', /weights could not be written: the disk is full/) : /the process has ended/,
        )
        expect(isStable(run.broadcasts, 3)).toBe(false)
        expect(latestVersion(run.broadcasts)).toBe(2)
        expectVersion(versionFolder(run.broadcasts, 2), 2)
        const next = kind === 'ENOSPC' ? run.publisher : run.restart({ files: transportFiles })
        await next.publish(3, fill(3))
        expectVersion(versionFolder(run.broadcasts, 3), 3)
        expect(foldersOf(run)).toEqual(['step_2', 'step_3'])
        if (kind === 'ENOSPC') expect(readdirSync(run.memoryFolder)).toHaveLength(memoryBacked === 'auto' ? 2 : 0)
      }
    })
  })

  test('a collection that is cut short leaves versions that are whole, or not there', async () => {
    const setUp = async (failAt: number) => {
      const files = failingTransport({ failAt, kind: 'crash' })
      const run = fakeRun({ files })
      for (const version of [1, 2, 3]) await run.publisher.publish(version, fill(version))
      return { run, files, before: files.calls }
    }
    const whole = await setUp(Number.POSITIVE_INFINITY)
    whole.run.publisher.collect([])
    expect(whole.files.calls).toBeGreaterThan(whole.before + 6)
    for (let failAt = whole.before + 1; failAt <= whole.files.calls; failAt++) {
      const { run } = await setUp(failAt)
      expect(() => run.publisher.collect([])).toThrow(fails('OUTPUT_UNUSABLE', /old versions could not be removed/))
      for (const version of [1, 2, 3]) if (isStable(run.broadcasts, version)) expectVersion(versionFolder(run.broadcasts, version), version)
      expect(latestVersion(run.broadcasts)).toBe(3)
      run.restart({ files: transportFiles }).collect([])
      expect(foldersOf(run)).toEqual(['step_3'])
    }
  })
})

describe('at the start', () => {
  test('what was begun, and files in memory whose publisher ended, are removed with their versions', async () => {
    const run = fakeRun()
    await run.publisher.publish(1, fill(1))
    await run.restart({ memoryBacked: 'never' }).publish(2, fill(2))
    const { host } = thisProcess()
    const orphan = join(run.memoryFolder, `trilithon-weights-${host}-${deadPid()}-123-00ff.bin`)
    const strangers = ['trilithon-weights-elsewhere-1-1-00ff.bin', 'trilithon-weights.bin', 'other']
    for (const path of [orphan, ...strangers.map((name) => join(run.memoryFolder, name))]) writeFileSync(path, 'data')
    for (const [name, location] of [
      ['step_3', orphan],
      ['step_4', '/nowhere/at/all'],
      ['.writing-step_9', ''],
      ['.retired-step_8-00', ''],
    ] as const) {
      mkdirSync(join(run.broadcasts, name))
      writeFileSync(join(run.broadcasts, name, 'STABLE'), '')
      if (location !== '') writeFileSync(join(run.broadcasts, name, 'LOCATION'), location)
    }
    mkdirSync(join(run.broadcasts, 'step_5'))
    run.restart()
    expect(foldersOf(run)).toEqual(['step_1', 'step_2'])
    const living = basename(readFileSync(join(run.broadcasts, 'step_1', 'LOCATION'), 'utf8').trim())
    expect(readdirSync(run.memoryFolder).sort()).toEqual([living, ...strangers].sort())
    for (const version of [1, 2]) expectVersion(versionFolder(run.broadcasts, version), version)
  })

  test('versions of a run that was given up are removed', async () => {
    const run = fakeRun({ memoryBacked: 'never' })
    for (const version of [4, 5, 6, 10]) await run.publisher.publish(version, fill(version))
    const publisher = run.restart({ discardFrom: 6 })
    expect(foldersOf(run)).toEqual(['step_4', 'step_5'])
    await publisher.publish(6, fill(6))
    expectVersion(versionFolder(run.broadcasts, 6), 6)
  })

  test('nothing is made before there is something to publish', () => {
    const run = fakeRun()
    expect(existsSync(run.broadcasts)).toBe(false)
    expect(latestVersion(run.broadcasts)).toBeNull()
  })

  test('a folder that is a file is refused', async () => {
    const run = fakeRun()
    mkdirSync(join(run.broadcasts, '..'), { recursive: true })
    writeFileSync(run.broadcasts, '')
    expect(() => run.restart()).toThrow(fails('OUTPUT_UNUSABLE', /what an earlier run left could not be removed/))
    await expect(run.publisher.publish(1, fill(1))).rejects.toThrow(fails('OUTPUT_UNUSABLE', /weights could not be written/))
  })
})

test('memory does not grow with versions', async () => {
  const run = fakeRun()
  for (let version = 1; version <= 30; version++) {
    await run.publisher.publish(version, fill(version))
    run.publisher.collect([])
    expect(readdirSync(run.memoryFolder).length).toBeLessThanOrEqual(2)
  }
  expect(foldersOf(run)).toEqual(['step_30'])
})
