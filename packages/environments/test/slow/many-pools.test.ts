import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger } from '@trilithon/core'
import { expect, test } from 'vitest'
import { startFakeEngine } from '../../src/__fixtures__/fake-engine.ts'
import { createEnvironmentPool } from '../../src/pool/create-environment-pool.ts'

const fixtures = fileURLToPath(new URL('../../src/__fixtures__/', import.meta.url))

// Budget: 32 processes, about 10 s of processor time.
test('32 pools that start at once meet in no socket, no log and no episode', { timeout: 120_000 }, async () => {
  const engine = await startFakeEngine()
  const logs = mkdtempSync(join(tmpdir(), 'trilithon-many-'))
  const pools = await Promise.all(
    Array.from({ length: 32 }, (_, index) =>
      createEnvironmentPool({
        ...{
          id: './scripted-environment.mjs',
          name: `pool-${index}`,
          workers: 1,
          workerEntry: { file: join(fixtures, 'worker-entry.mjs') },
        },
        ...{
          workingDirectory: fixtures,
          renderer: { config: null, tokenizer: '', model: '' },
          stateColumns: ['pid', 'kept'],
          log: silentLogger,
        },
        logFolder: join(logs, String(index)),
      }),
    ),
  )
  try {
    const results = await Promise.all(
      pools.map((pool, taskIndex) =>
        pool.run(
          {
            ...{
              rolloutId: `r${taskIndex}`,
              groupId: 'g',
              taskIndex,
              split: 'train',
              seed: 0,
              baseUrl: engine.url,
              headers: {},
              salt: '0',
              session: '',
            },
            ...{
              lease: { id: '', deadlineMs: null },
              model: 'm',
              sampling: { temperature: 1 },
              maxSeqLen: 64,
              apiKeyVar: null,
              wantsRoutedExperts: false,
            },
          },
          { signal: new AbortController().signal },
        ),
      ),
    )
    expect(results.map(({ reward }) => reward)).toEqual(Array(32).fill(0.5))
    expect(results.map(({ state }) => state.kept)).toEqual(Array.from({ length: 32 }, (_, index) => ({ deep: [index] })))
    expect(new Set(results.map(({ state }) => state.pid)).size).toBe(32)
    expect(readdirSync(logs)).toHaveLength(32)
  } finally {
    await Promise.all(pools.map((pool) => pool.dispose()))
    await engine.close()
    rmSync(logs, { recursive: true })
  }
})
