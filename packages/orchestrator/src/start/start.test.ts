import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, TrilithonError } from '@trilithon/core'
import { createWeightsPublisher, holdVersion } from '@trilithon/transport'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { deriveOrchestrator } from '../configuration/orchestrator-derive.ts'
import { OrchestratorSchema } from '../configuration/orchestrator-schema.ts'
import { FakeEngines } from '../fakes/fake-world.ts'
import { VirtualClock } from '../fakes/virtual-clock.ts'
import { LiveFleet } from '../fleet/live-fleet.ts'
import { VersionHolds } from '../updates/version-holds.ts'
import { clientHeaders, connectEngines, engineAddresses, serveFirstVersion } from './engine-connection.ts'
import { prepareOrchestrator } from './orchestrator-setup.ts'
import { createRunFiles } from './run-files.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orchestrator-'))
  mkdirSync(join(folder, 'model'))
  const config = {
    ...{ model_type: 'qwen3', vocab_size: 20, hidden_size: 32, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16 },
    ...{ intermediate_size: 64, num_hidden_layers: 2, max_position_embeddings: 64, rms_norm_eps: 1e-6, rope_theta: 100 },
  }
  writeFileSync(join(folder, 'model', 'config.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'model', 'tokenizer.json'), '{}')
})
afterEach(() => rmSync(folder, { recursive: true }))

const resolve = (given: object) =>
  deriveOrchestrator(
    OrchestratorSchema.parse({
      student: { model: { name: 'model' } },
      renderer: { name: 'default' },
      output_dir: 'out/run_default',
      ...given,
    }),
    () => false,
  )
const prepare = (given: object = {}) => prepareOrchestrator({ config: resolve(given), workingDirectory: folder, environment: {} })
const client = (given: object = {}) => resolve({ student: { model: { name: 'model' }, client: given } }).student.client

describe('before a start', () => {
  it('finds model, tokeniser and vocabulary, and makes the folder', async () => {
    const setup = await prepare()
    expect(setup).toMatchObject({
      vocabSize: 20,
      tokenizerFolder: join(folder, 'model'),
      outputFolder: join(folder, 'out/run_default'),
      resume: null,
      chatTemplate: null,
    })
  })

  it('reads a chat template from a file, or takes it as a text', async () => {
    writeFileSync(join(folder, 'template.jinja'), 'hello')
    expect((await prepare({ tokenizer: { chat_template: 'template.jinja' } })).chatTemplate).toEqual({
      text: 'hello',
      file: join(folder, 'template.jinja'),
    })
    expect((await prepare({ tokenizer: { chat_template: '{{ x }}' } })).chatTemplate?.text).toBe('{{ x }}')
  })

  it.each<[string, object, string, string]>([
    ['a model that is not there', { student: { model: { name: 'absent' } } }, 'MODEL_NOT_FOUND', 'student.model.name'],
    ['a teacher', { training_mode: 'opd' }, 'FEATURE_UNAVAILABLE', 'training_mode'],
    ['the chat route', { renderer: null }, 'FEATURE_UNAVAILABLE', 'renderer'],
    ['several data ranks', { num_train_workers: 2 }, 'FEATURE_UNAVAILABLE', 'num_train_workers'],
    [
      'a header from an unknown field',
      { student: { model: { name: 'model' }, client: { extra_headers_from_state: { 'X-A': 'mood' } } } },
      'FEATURE_UNAVAILABLE',
      'student.client.extra_headers_from_state.X-A',
    ],
    ['a file of an environment that is not there', { train: { env: [{ id: './absent.mjs' }] } }, 'ENVIRONMENT_INVALID', 'train.env.0.id'],
    ['a step that was never there', { ckpt: { resume_step: 4 } }, 'RESUME_IMPOSSIBLE', 'ckpt.resume_step'],
  ])('refuses %s', async (_, given, code, path) => {
    const error = await prepare(given).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(TrilithonError.is(error)).toBe(true)
    expect(error).toMatchObject({ code, path })
  })

  it('leaves files of an environment to the server that has them', async () => {
    await expect(prepare({ train: { env: [{ id: './absent.mjs', address: 'tcp://a:1' }] } })).resolves.toMatchObject({ vocabSize: 20 })
  })

  it('refuses the folder of another run', async () => {
    mkdirSync(join(folder, 'out/run_default/rollouts/step_0'), { recursive: true })
    await expect(prepare()).rejects.toMatchObject({ code: 'OUTPUT_UNUSABLE' })
  })
})

describe('engines', () => {
  it.each<[object, readonly object[]]>([
    [
      { base_url: ['http://a:1/v1', 'http://b:2'] },
      [
        { url: 'http://a:1', adminUrl: 'http://a:1', ranks: 1 },
        { url: 'http://b:2', adminUrl: 'http://b:2', ranks: 1 },
      ],
    ],
    [{ base_url: ['http://a:1/v1/'], dp_rank_count: 2 }, [{ url: 'http://a:1', adminUrl: 'http://a:1', ranks: 2 }]],
    [{ base_url: ['http://a:1/v1'], admin_base_url: ['http://c:3'] }, [{ url: 'http://a:1', adminUrl: 'http://c:3', ranks: 1 }]],
    [
      { base_url: ['http://r/v1'], admin_base_url: ['http://c:3', 'http://d:4'] },
      [
        { url: 'http://c:3', adminUrl: 'http://c:3', ranks: 1 },
        { url: 'http://d:4', adminUrl: 'http://d:4', ranks: 1 },
      ],
    ],
  ])('of %j', (given, expected) => expect(engineAddresses(client(given))).toEqual(expected))

  it('of several ranks are workers of their own, and requests say which', () => {
    const fleet = new LiveFleet([{ url: 'http://a', adminUrl: 'http://a', ranks: 2 }], new VirtualClock())
    expect([...fleet.workers()].map(({ id }) => id)).toEqual(['http://a#0', 'http://a#1'])
    expect(fleet.headersOf('http://a#1')).toEqual({ 'X-data-parallel-rank': '1' })
    expect(fleet.urlOf('http://a#1')).toBe('http://a')
  })

  it('get the headers of the configuration, and the key where there is one', () => {
    const table = client({ headers: { A: '1' }, headers_from_env: { B: 'VAR', C: 'NONE' }, api_key_var: 'KEY' })
    expect(clientHeaders(table, { VAR: '2', KEY: 'k' })).toEqual({
      requests: { A: '1', B: '2' },
      admin: { A: '1', B: '2', authorization: 'Bearer k' },
    })
    expect(clientHeaders(table, {})).toEqual({ requests: { A: '1' }, admin: { A: '1' } })
  })

  const connect = (change: (engines: FakeEngines) => void, given: object = {}) => {
    const clock = new VirtualClock()
    const admin = new FakeEngines(clock)
    change(admin)
    const options = {
      client: client({ wait_for_ready_timeout: 5, ...given }),
      model: 'fake',
      admin,
      clock,
      log: silentLogger,
      signal: new AbortController().signal,
    }
    return clock.run(connectEngines(options))
  }

  it('are waited for', async () => {
    let looks = 0
    const fleet = await connect((engines) => {
      engines.isHealthy = async () => ++looks > 3
    })
    expect([...fleet.workers()].map(({ state }) => state)).toEqual(['ready'])
    expect(looks).toBe(4)
  })

  it.each<[string, (engines: FakeEngines) => void, RegExp]>([
    ['too long', (engines) => void Object.assign(engines, { isHealthy: async () => false }), /was not ready within 5 s/],
    ['for another model', (engines) => void Object.assign(engines, { models: async () => ['other'] }), /serves other, and not fake/],
  ])('are not waited for %s', async (_, change, message) => {
    await expect(connect(change)).rejects.toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringMatching(message) })
  })

  it('may serve any model where nobody checks', async () => {
    await connect((engines) => void Object.assign(engines, { models: async () => ['other'] }), { skip_model_check: true })
  })
})

describe('the version that serves first', () => {
  const serve = (engines: FakeEngines, clock: VirtualClock, resumeStep: number | null) => {
    const fleet = new LiveFleet([{ url: 'http://a', adminUrl: 'http://a', ranks: 1 }], clock)
    fleet.change('http://a', { state: 'ready', policyVersion: engines.served })
    const options = { fleet, admin: engines, clock, log: silentLogger, signal: new AbortController().signal, timeoutS: 3 }
    const broadcasts = join(folder, 'broadcasts')
    return serveFirstVersion({ ...options, broadcasts, holds: new VersionHolds((version) => holdVersion(broadcasts, version)), resumeStep })
  }

  it('is 0 where a run begins, and nothing else', async () => {
    const clock = new VirtualClock()
    expect(await clock.run(serve(new FakeEngines(clock), clock, null))).toBe(0)
    await expect(clock.run(serve(new FakeEngines(clock, 3), clock, null))).rejects.toMatchObject({
      code: 'ENGINE_FAILED',
      message: expect.stringContaining('version 3'),
    })
  })

  it('is that of the checkpoint where a run goes on, as soon as the trainer has published it', async () => {
    const clock = new VirtualClock()
    const engines = new FakeEngines(clock)
    const publisher = createWeightsPublisher({
      broadcasts: join(folder, 'broadcasts'),
      ...{ profile: 'fp32', tensors: [{ name: 'w', dtype: 'F32', shape: [1] }], memoryBacked: 'never', keep: 2 },
    })
    await publisher.publish(4, (_, __, into) => into.fill(4))
    expect(await clock.run(serve(engines, clock, 4))).toBe(4)
    expect(engines.served).toBe(4)
    expect(engines.isPaused).toBe(false)
    publisher.dispose()
  })

  it('is waited for no longer than allowed', async () => {
    const clock = new VirtualClock()
    await expect(clock.run(serve(new FakeEngines(clock), clock, 4))).rejects.toMatchObject({
      code: 'RESUME_IMPOSSIBLE',
      path: 'orchestrator.ckpt.wait_for_weights_timeout',
    })
  })
})

describe('the files of a run', () => {
  it('are lines of records, and checkpoints where they are wanted', async () => {
    const files = createRunFiles(join(folder, 'run'), null)
    await files.saveRecords(2, 'train_rollouts.jsonl', [{ a: 1 }, { a: 2 }])
    expect(readFileSync(join(folder, 'run/rollouts/step_2/train_rollouts.jsonl'), 'utf8')).toBe('{"a":1}\n{"a":2}\n')
    expect(files.saveCheckpoint).toBeNull()
  })

  it('that cannot be written are told of', async () => {
    writeFileSync(join(folder, 'run'), '')
    await expect(createRunFiles(join(folder, 'run'), null).saveRecords(0, 'x', [])).rejects.toMatchObject({ code: 'OUTPUT_UNUSABLE' })
  })
})
