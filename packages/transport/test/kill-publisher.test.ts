/** A publisher in a process of its own (dist: the test target builds first) is killed again and again, while this process reads. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { TrilithonError } from '@trilithon/core'
import { expect, test } from 'vitest'
import { createWeightsPublisher, latestVersion, openWeights, versionFolder } from '../src/index.ts'
import { temporaryFolder } from './temporary-folder.ts'

const script = fileURLToPath(new URL('publish-loop.mjs', import.meta.url))
const rounds = 4

/** Reads the latest version whole; gives its number, or undefined where it was collected, or its data lost, before it was open. */
function readLatest(broadcasts: string): number | undefined {
  const version = latestVersion(broadcasts)
  if (version === null) return undefined
  let weights: ReturnType<typeof openWeights>
  try {
    weights = openWeights(versionFolder(broadcasts, version))
  } catch (error) {
    if (TrilithonError.is(error, 'WEIGHTS_INVALID')) return undefined
    throw error
  }
  for (const { name, shape } of weights.manifest.tensors) {
    weights.verify(name)
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1))
    weights.read(name, 0, values)
    const wrong = values.find((value) => value !== version % 256)
    if (wrong !== undefined) throw new Error(`torn: ${name} of version ${version} holds ${wrong}`)
  }
  weights.release()
  return version
}

test.for(['auto', 'never'] as const)('memory-backed %s: no read is torn, and what is left behind is removed', async (memoryBacked) => {
  const broadcasts = join(temporaryFolder(), 'broadcasts')
  const memoryFolder = temporaryFolder()
  const seen = new Set<number>()
  let reads = 0
  let published = 0
  for (let round = 0; round < rounds; round++) {
    const child = spawn(process.execPath, [script, broadcasts, memoryFolder, memoryBacked, String(published)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(child, 'exit')
    child.stdout.on('data', (text) => {
      published = Number(String(text).trim().split('\n').at(-1))
    })
    await Promise.race([once(child.stdout, 'data'), exited.then(() => expect.unreachable('the publisher ended by itself'))])
    const until = performance.now() + 150 + Math.random() * 100
    while (performance.now() < until) {
      const version = readLatest(broadcasts)
      if (version !== undefined) {
        seen.add(version)
        reads += 1
      }
      await sleep(1)
    }
    child.kill('SIGKILL')
    const [, signal] = await exited
    expect(signal).toBe('SIGKILL')
    readLatest(broadcasts)
  }
  expect(reads).toBeGreaterThan(rounds)
  expect(seen.size).toBeGreaterThan(rounds)
  // The next start finds no process behind the files in memory.
  const tensors = [{ name: 'a', dtype: 'F32', shape: [1] }] as const
  createWeightsPublisher({ broadcasts, memoryFolder, memoryBacked, profile: 'fp32', keep: 1, tensors })
  expect(readdirSync(memoryFolder)).toEqual([])
  const left = readdirSync(broadcasts)
  expect(left.filter((name) => name.startsWith('.'))).toEqual([])
  if (memoryBacked === 'auto') expect(left).toEqual([])
  else expect(readLatest(broadcasts)).toBe(latestVersion(broadcasts))
})
