import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fakeRun, fill } from '../../test/fake-weights.ts'
import { temporaryFolder } from '../../test/temporary-folder.ts'
import { type TransportFiles, transportFiles } from '../files/transport-files.ts'
import { openWeights } from './open-weights.ts'
import { holdVersion, isStable, latestVersion, watchVersions } from './versions.ts'
import { versionFolder } from './weights-manifest.ts'

test('the latest version is the highest one by number that is stable', async () => {
  const run = fakeRun()
  for (const version of [2, 9, 10]) await run.publisher.publish(version, fill(version))
  mkdirSync(join(run.broadcasts, 'step_11'))
  mkdirSync(join(run.broadcasts, 'step_012'))
  writeFileSync(join(run.broadcasts, 'step_012', 'STABLE'), '')
  writeFileSync(join(run.broadcasts, 'step_13'), 'a file')
  expect(latestVersion(run.broadcasts)).toBe(10)
  expect([9, 10, 11, 12, 13].map((version) => isStable(run.broadcasts, version))).toEqual([true, true, false, false, false])
})

test('a version whose data went with its publisher is not stable', async () => {
  const run = fakeRun()
  await run.publisher.publish(1, fill(1))
  rmSync(run.memoryFolder, { recursive: true })
  expect(isStable(run.broadcasts, 1)).toBe(false)
})

/** Versions that a watch told of, and its end. */
function watching(broadcasts: string, above?: number | null, onVersion?: (version: number) => void | Promise<void>) {
  const controller = new AbortController()
  const told: number[] = []
  const ended = watchVersions(
    broadcasts,
    (version) => {
      told.push(version)
      return onVersion?.(version)
    },
    { signal: controller.signal, ...(above === undefined ? {} : { above }) },
  )
  return { told, ended, controller }
}

test('a watch tells of what is there and of what comes, and skips what was overtaken', async () => {
  const run = fakeRun({ keep: 10 })
  let goOn: (() => void) | undefined
  const first = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const { told, ended, controller } = watching(run.broadcasts, null, (version) => (version === 2 ? first : undefined))
  await sleep(50)
  expect(told).toEqual([])
  await run.publisher.publish(2, fill(2))
  await expect.poll(() => told).toEqual([2])
  for (const version of [3, 4, 5]) await run.publisher.publish(version, fill(version))
  goOn?.()
  await expect.poll(() => told).toEqual([2, 5])
  await run.publisher.publish(1, fill(1))
  await sleep(150)
  controller.abort()
  await ended
  expect(told).toEqual([2, 5])
})

test('a watch begins above a version', async () => {
  const run = fakeRun({ keep: 10 })
  for (const version of [1, 2]) await run.publisher.publish(version, fill(version))
  const { told, ended, controller } = watching(run.broadcasts, 2)
  await sleep(150)
  expect(told).toEqual([])
  await run.publisher.publish(3, fill(3))
  await expect.poll(() => told).toEqual([3])
  controller.abort()
  await ended
})

test('a version is told of sooner than the folder is looked at', { retry: 3 }, async () => {
  const run = fakeRun({ keep: 10 })
  await run.publisher.publish(1, fill(1))
  const delays: number[] = []
  let publishedAt = 0
  const { told, ended, controller } = watching(run.broadcasts, 1, () => void delays.push(performance.now() - publishedAt))
  for (let version = 2; version <= 6; version++) {
    await sleep(30)
    await run.publisher.publish(version, fill(version))
    publishedAt = performance.now()
    await expect.poll(() => told.at(-1), { interval: 5 }).toBe(version)
  }
  controller.abort()
  await ended
  expect(delays.sort((a, b) => a - b)[2]).toBeLessThan(50)
})

test('what is thrown on a version ends the watch, and so does a signal that has ended already', async () => {
  const run = fakeRun()
  await run.publisher.publish(1, fill(1))
  const { ended } = watching(run.broadcasts, null, () => {
    throw new Error('cannot take it')
  })
  await expect(ended).rejects.toThrow('cannot take it')
  await watchVersions(run.broadcasts, () => expect.unreachable(), { signal: AbortSignal.abort() })
  await expect(watching(run.broadcasts, null, () => Promise.reject(new Error('nor this'))).ended).rejects.toThrow('nor this')
})

test('a folder that does not exist is waited for', async () => {
  const controller = new AbortController()
  const ended = watchVersions(join(temporaryFolder(), 'not', 'there'), () => expect.unreachable(), { signal: controller.signal })
  await sleep(120)
  controller.abort(new Error('enough'))
  await ended
})

test('a version that is held is not tidied away, and one that is gone cannot be held', async () => {
  const run = fakeRun({ keep: 1 })
  await run.publisher.publish(1, fill(1))
  const lease = holdVersion(run.broadcasts, 1)
  expect(lease).not.toBeNull()
  for (const version of [2, 3, 4]) {
    await run.publisher.publish(version, fill(version))
    run.publisher.collect([])
  }
  // Opened long after, by somebody else, and its bytes are its own.
  const reader = openWeights(versionFolder(run.broadcasts, 1))
  const [value] = reader.manifest.tensors.map(({ name }) => {
    reader.verify(name)
    return name
  })
  expect(value).toBeDefined()
  reader.release()
  for (const version of [2, 3, 99]) expect(holdVersion(run.broadcasts, version)).toBeNull()
  lease?.release()
  lease?.release()
  run.publisher.collect([])
  expect([1, 4].map((version) => isStable(run.broadcasts, version))).toEqual([false, true])
})

test('whenever its publisher tidies up, a version is held or it is gone, never half', async () => {
  const run = fakeRun({ keep: 1 })
  await run.publisher.publish(1, fill(1))
  await run.publisher.publish(2, fill(2))
  // The publisher comes in between the look and the lease, at each call of the file system.
  for (let moment = 0; ; moment++) {
    let calls = 0
    const files: TransportFiles = new Proxy(transportFiles, {
      get(target, name: keyof TransportFiles) {
        const call = target[name] as (...values: unknown[]) => unknown
        return (...values: unknown[]) => {
          if (calls++ === moment) run.publisher.collect([])
          return call.apply(target, values)
        }
      },
    })
    const lease = holdVersion(run.broadcasts, 1, files)
    if (calls <= moment) break
    run.publisher.collect([])
    expect(isStable(run.broadcasts, 1)).toBe(lease !== null)
    lease?.release()
    run.publisher.collect([])
    expect(isStable(run.broadcasts, 1)).toBe(false)
    await run.publisher.publish(1, fill(1))
  }
})
