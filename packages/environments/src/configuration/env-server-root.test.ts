import { expect, test } from 'vitest'
import { envServerRoot } from './env-server-root.ts'

const nothingGiven = () => false

test('defaults are those of prime-rl', () => {
  const config = envServerRoot.schema.parse({})
  expect(config).toEqual({
    plugins: [],
    env: {
      id: 'reverse-text',
      name: null,
      args: {},
      extra_env_kwargs: {},
      address: null,
      num_workers: 'auto',
      ratio: null,
      max_retries: 3,
      max_total_completion_tokens: -1,
      timeout: null,
      state_columns: [],
    },
    log: { level: 'info', vf_level: 'info', json_logging: false, log_data: false, interval: 10 },
    env_install_prerelease: false,
    output_dir: 'outputs',
  })
})

test('one worker serves a stand-alone environment unless told otherwise', () => {
  const config = envServerRoot.schema.parse({})
  expect(envServerRoot.derive?.(config, nothingGiven).env.num_workers).toBe(1)
  const three = envServerRoot.schema.parse({ env: { num_workers: 3 } })
  expect(envServerRoot.derive?.(three, nothingGiven).env.num_workers).toBe(3)
})

test('the other spelling of timeout moves', () => {
  expect(envServerRoot.moves).toEqual([{ from: 'env.timeout_seconds', to: 'env.timeout' }])
})

test.each([
  [{ env: { num_workers: 0 } }, 'env.num_workers'],
  [{ env: { ratio: 0 } }, 'env.ratio'],
  [{ env: { timeout: Number.NaN } }, 'env.timeout'],
  [{ log: { level: 'loud' } }, 'log.level'],
  [{ log: { interval: 0 } }, 'log.interval'],
  [{ env: { unknown: 1 } }, 'env'],
])('%j is refused at %s', (input, path) => {
  const { error } = envServerRoot.schema.safeParse(input)
  expect(error?.issues.map((issue) => issue.path.join('.'))).toEqual([path])
})
