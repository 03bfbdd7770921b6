// Budget: about 40 s, most of it deadlines that pass and processes that start.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger } from '@trilithon/core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeEngine, startFakeEngine } from '../../src/__fixtures__/fake-engine.ts'
import { createEnvironmentPool } from '../../src/pool/create-environment-pool.ts'
import type { EnvironmentPool, EnvironmentPoolOptions, EpisodeResult, WorkerDeath } from '../../src/pool/environment-pool.ts'
import { type EnvironmentServer, startEnvironmentServer } from '../../src/server/environment-server.ts'

const fixtures = fileURLToPath(new URL('../../src/__fixtures__/', import.meta.url))

let engine: FakeEngine
let deaths: WorkerDeath[] = []
const open: { dispose(): Promise<void> }[] = []
beforeAll(async () => {
  engine = await startFakeEngine()
})
afterAll(() => engine.close())
beforeEach(() => {
  deaths = []
})
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.dispose()
})

/** The usual set-up: one worker, one timeout for everybody, and no retry that could hide what was lost. */
const shared = (kind: string) => ({
  ...{ id: './scripted-environment.mjs', args: { tasks: [kind, ...Array(3).fill('wait-first')] }, workers: 1, workingDirectory: fixtures },
  ...{ workerEntry: { file: join(fixtures, 'worker-entry.mjs') }, log: silentLogger },
  onWorkerDeath: (death: WorkerDeath) => deaths.push(death),
})

async function openPool(kind: string, more: Partial<EnvironmentPoolOptions> = {}): Promise<EnvironmentPool> {
  const renderer = { config: null, tokenizer: 'letters', model: 'm' }
  const pool = await createEnvironmentPool({ ...shared(kind), renderer, maxRetries: 0, ...more })
  open.push(pool)
  return pool
}

/** Four episodes of each of four tasks; what the first task does is the fault. */
async function runSixteen(pool: EnvironmentPool): Promise<{ guilty: EpisodeResult[]; others: EpisodeResult[] }> {
  const results = await Promise.all(
    Array.from({ length: 16 }, (_, index) =>
      pool.run(
        {
          ...{ rolloutId: `r${index}`, groupId: `g${index >> 2}`, taskIndex: index >> 2, split: 'train', seed: 0, baseUrl: engine.url },
          ...{ headers: {}, salt: '4', session: `s${index}`, lease: { id: `l${index}`, deadlineMs: null }, model: 'm' },
          ...{ sampling: { temperature: 1 }, maxSeqLen: 64, apiKeyVar: null, wantsRoutedExperts: false },
        },
        { signal: new AbortController().signal },
      ),
    ),
  )
  return { guilty: results.slice(0, 4), others: results.slice(4) }
}

const allGood = Array(12).fill([0.5, undefined, 1])
const summary = (results: readonly EpisodeResult[]) => results.map(({ reward, error, turns }) => [reward, error?.type, turns.length])
const errors = (results: readonly EpisodeResult[]) => results.map(({ reward, error }) => [reward, error?.type])

describe('an episode that holds its worker', { timeout: 120_000 }, () => {
  it('with the same timeout as all others is the only one that fails', async () => {
    const pool = await openPool('busy-score', { timeoutS: 1.5 })
    const { guilty, others } = await runSixteen(pool)
    expect(summary(others)).toEqual(allGood)
    expect(errors(guilty)).toEqual(Array(4).fill([null, 'DeadlineExceeded']))
    expect(guilty[0]?.error?.message).toMatch(/without a pause/)
    // Those of the same task are suspected, and disturb nobody else.
    expect(deaths).toHaveLength(4)
    expect(deaths[0]?.rolloutIds).toHaveLength(16)
    expect(deaths.slice(1).map(({ rolloutIds }) => rolloutIds.length)).toEqual([1, 1, 1])
    // Nor does the task when it comes again.
    const again = await runSixteen(pool)
    expect(summary(again.others)).toEqual(allGood)
    expect(deaths.slice(4).map(({ worker, rolloutIds }) => [worker, rolloutIds.length])).toEqual(Array(4).fill([1, 1]))
  })

  it('without a timeout is the only one that fails, after one silence', async () => {
    const pool = await openPool('busy-later', { unresponsiveS: 2 })
    const { guilty, others } = await runSixteen(pool)
    expect(summary(others)).toEqual(allGood)
    expect(errors(guilty)).toEqual(Array(4).fill([null, 'WorkerDied']))
    expect(guilty[0]?.error?.message).toMatch(/did not answer for 2 s/)
  })

  it('behind a server is the only one that fails there too', async () => {
    const server: EnvironmentServer = await startEnvironmentServer({
      ...{ ...shared('busy-score'), address: 'tcp://127.0.0.1:0' },
      limits: { timeoutS: 1.5, maxRetries: 0, maxTotalCompletionTokens: -1, stateColumns: [] },
    })
    open.push(server)
    const { guilty, others } = await runSixteen(await openPool('', { address: server.address, timeoutS: 1.5 }))
    expect(summary(others)).toEqual(allGood)
    expect(errors(guilty)).toEqual(Array(4).fill([null, 'DeadlineExceeded']))
  })
})

describe('an episode that ends its worker', { timeout: 120_000 }, () => {
  it.each([
    ['by process.exit', 'exit', /ended with status 3/],
    ['by an exception out of a timer', 'crash', /ended with status 1/],
    ['and leaves no trace', 'die', /killed by SIGKILL/],
  ])('%s is the only one that fails', async (_, kind, message) => {
    const pool = await openPool(kind)
    const { guilty, others } = await runSixteen(pool)
    expect(summary(others)).toEqual(allGood)
    expect(errors(guilty)).toEqual(Array(4).fill([null, 'WorkerDied']))
    for (const { error } of guilty) expect(error?.message).toMatch(message)
  })

  it('and all others too: retries do not put that off for long', async () => {
    const pool = await openPool('', { args: { tasks: Array(4).fill('exit') }, maxRetries: 3 })
    const { guilty, others } = await runSixteen(pool)
    expect(errors([...guilty, ...others])).toEqual(Array(16).fill([null, 'WorkerDied']))
    // Each of them four times would be 64.
    expect(deaths.length).toBeLessThan(32)
  })
})
