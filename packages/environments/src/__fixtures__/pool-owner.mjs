/** Owns a pool of two workers, one of them held by a busy loop, tells their process ids and waits to be killed. */
import { fileURLToPath } from 'node:url'
import { silentLogger } from '@trilithon/core'
import { createEnvironmentPool } from '@trilithon/environments'

const fixtures = fileURLToPath(new URL('.', import.meta.url))
const pool = await createEnvironmentPool({
  id: './scripted-environment.mjs',
  args: { tasks: ['echo', 'echo', 'busy'] },
  workers: 2,
  workerEntry: { file: `${fixtures}worker-entry.mjs` },
  workingDirectory: fixtures,
  renderer: { config: null, tokenizer: '', model: '' },
  stateColumns: ['pid'],
  log: silentLogger,
})
const run = (taskIndex) =>
  pool.run(
    {
      ...{ rolloutId: `r${taskIndex}`, groupId: 'g', taskIndex, split: 'train', seed: 0, baseUrl: process.argv[2], headers: {}, salt: '', session: '' },
      ...{ lease: { id: '', deadlineMs: null }, model: 'm', sampling: { temperature: 1 }, maxSeqLen: 64, apiKeyVar: null, wantsRoutedExperts: false },
    },
    { signal: new AbortController().signal },
  )
const results = await Promise.all([run(0), run(1)])
void run(2)
setTimeout(() => process.send(results.map(({ state }) => state.pid)), 300)
setInterval(() => undefined, 1000)
