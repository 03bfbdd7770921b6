/** The built trainer in processes of their own, fed by the real transport: the test target builds first. */
import { fork } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isRoleEvent, launchedVariable, type RoleEvent } from '@trilithon/monitor'
import { createRolloutSender, latestVersion, openRolloutSender, openWeights } from '@trilithon/transport'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TrainerSchema } from '../src/configuration/trainer-schema.ts'
import { makeTinyFolder, tinySetup } from '../src/rl/__fixtures__/tiny-run.ts'
import { createRlTrainer } from '../src/rl/create-rl-trainer.ts'
import { fakeBatch } from '../src/rl/fake-batches.ts'

const program = fileURLToPath(new URL('./run-trainer.mjs', import.meta.url))
let folder = ''
beforeEach(() => {
  folder = makeTinyFolder()
})
afterEach(() => rmSync(folder, { recursive: true }))

interface Ended {
  readonly status: number | null
  readonly out: string
  readonly err: string
  readonly events: readonly RoleEvent[]
  /** From the signal to the end. */
  readonly stopSeconds: number
}

interface Kill {
  /** Sends the signal when the output holds this. */
  readonly at: string
  readonly by: 'SIGTERM' | 'SIGKILL'
}

function train(changes: object, kill?: Kill): Promise<Ended> {
  const config = TrainerSchema.parse({
    max_steps: 6,
    model: { name: 'model', seq_len: 32 },
    optim: { type: 'adamw', lr: 1e-2 },
    ckpt: {},
    output_dir: 'out',
    ...changes,
  })
  const argument = JSON.stringify({ config, workingDirectory: folder })
  return new Promise((resolve) => {
    const child = fork(program, [argument], {
      env: { PATH: process.env.PATH, TRILITHON_THREADS: '1', [launchedVariable]: '1' },
      execArgv: [],
      silent: true,
    })
    const events: RoleEvent[] = []
    let [out, err, stopped] = ['', '', 0]
    child.on('message', (message) => {
      if (isRoleEvent(message)) events.push(message)
    })
    child.stderr?.on('data', (text: Buffer) => {
      err += text.toString()
    })
    child.stdout?.on('data', (text: Buffer) => {
      out += text.toString()
      if (kill === undefined || stopped > 0 || !out.includes(kill.at)) return
      stopped = performance.now()
      child.kill(kill.by)
    })
    child.on('close', (status) => resolve({ status, out, err, events, stopSeconds: (performance.now() - stopped) / 1000 }))
  })
}

const made = (step: number) => fakeBatch(step, { batchSize: 4, varies: true, seqLen: 24, vocabSize: 20, profile: 'fp32' })
async function ship(first: number, last: number, run = 'out'): Promise<void> {
  const sender = createRolloutSender(join(folder, run, 'run_default', 'rollouts'))
  for (let step = first; step <= last; step++) await sender.send(step, made(step).samples, {})
}
const stepsOf = (run: string) =>
  readFileSync(join(folder, run, 'metrics', 'trainer.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).step)
const weightsOf = (run: string) => readFileSync(join(folder, run, 'weights', 'step_6', 'model.safetensors')).toString('base64')
const broadcastsOf = (run: string) => join(folder, run, 'run_default', 'broadcasts')

/** The same batches in this process, without a stop: the weights of the end. */
async function trainHere(): Promise<string> {
  const trainer = await createRlTrainer({ setup: tinySetup(folder, { output_dir: 'whole' }) })
  while (!trainer.isFinished) await trainer.step(made(trainer.version))
  trainer.finish()
  trainer.dispose()
  return weightsOf('whole')
}

describe('a trainer process', () => {
  it('trains the batches that come, one after the other, tells it, and leaves the last version for others', async () => {
    await ship(0, 1)
    // The others come while it waits.
    const late = (async () => {
      while (latestVersion(broadcastsOf('out')) !== 2) await new Promise((resolve) => setTimeout(resolve, 20))
      const served = openWeights(join(broadcastsOf('out'), 'step_2'))
      expect(served.manifest.version).toBe(2)
      served.release()
      await new Promise((resolve) => setTimeout(resolve, 200))
      await ship(2, 5)
    })()
    const { status, err, out, events } = await train({})
    await late
    expect([status, err]).toEqual([0, ''])
    expect(out.trim().split('\n')).toHaveLength(6)
    expect(out).toMatch(
      /SUCCESS \(trainer\): Step 0 \| [\d.]+s \| Loss -?\d+\.\d{4} \| Entropy \d+\.\d{4} \| Mismatch KL \d+\.\d{4} \| Grad\. Norm .* \| LR 1\.00e-2 \| Throughput \d+ tokens\/s/,
    )
    expect(events.map(({ kind }) => kind).filter((kind) => kind !== 'status')).toEqual([
      'ready',
      'step',
      'step',
      'step',
      'step',
      'step',
      'step',
      'ended',
    ])
    expect(events).toContainEqual(expect.objectContaining({ kind: 'status', state: 'waiting for a batch' }))
    const steps = events.flatMap((event) => (event.kind === 'step' ? [event.values] : []))
    for (const name of [
      'time/step',
      'time/wait_for_batch',
      'time/load_data',
      'time/forward_backward',
      'time/broadcast_weights',
      'perf/throughput',
      'perf/mfu',
      'perf/measured_peak_gflops',
      'optim/zero_grad_ratio',
      'routing_confidence/mean',
      'system/ckpt_disk_free_gib',
      'system/ckpt_disk_used_gib',
      'system/ckpt_disk_total_gib',
      'system/ckpt_disk_free_ratio',
      'tokens/exact',
    ])
      expect(steps[2], name).toHaveProperty([name], expect.any(Number))
    expect(steps[2]?.['time/wait_for_batch']).toBeGreaterThan(0.1)
    expect(stepsOf('out')).toEqual([0, 1, 2, 3, 4, 5])
    expect(readdirSync(join(folder, 'out')).sort()).toEqual(['checkpoints', 'metrics', 'run_default', 'weights'])
    const last = openWeights(join(broadcastsOf('out'), 'step_6'))
    expect(last.manifest.version).toBe(6)
    last.release()
    const again = await train({})
    expect(again.status).toBe(1)
    expect(JSON.parse(again.err)).toMatchObject({ code: 'OUTPUT_UNUSABLE' })
  })

  it('ends by a signal while it waits, with what is due, and goes on to the bits of a run that never stopped', async () => {
    const whole = await trainHere()
    await ship(0, 2)
    const first = await train({}, { at: 'Step 2 ', by: 'SIGTERM' })
    expect(first.status).toBe(130)
    expect(first.stopSeconds).toBeLessThan(3)
    expect(readdirSync(join(folder, 'out', 'checkpoints'))).toEqual(['step_3'])
    await ship(3, 5)
    expect((await train({ ckpt: { resume_step: -1 } })).status).toBe(0)
    expect(weightsOf('out')).toBe(whole)
    expect(stepsOf('out')).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('ends by a signal in the middle of its steps with the state of the last whole one', async () => {
    const endless = { max_steps: 1_000_000, data: { fake: {} } }
    const { status, stopSeconds } = await train(endless, { at: 'Step 3 ', by: 'SIGTERM' })
    expect(status).toBe(130)
    expect(stopSeconds).toBeLessThan(3)
    const [last, ...others] = readdirSync(join(folder, 'out', 'checkpoints')).map((name) => Number(name.slice('step_'.length)))
    expect([others, stepsOf('out').at(-1)]).toEqual([[], (last ?? 0) - 1])
    const whole = await train({ ...endless, max_steps: (last ?? 0) + 2, ckpt: { resume_step: -1 } })
    expect([whole.status, stepsOf('out').length]).toEqual([0, (last ?? 0) + 2])
  })

  it('is killed and goes on: batches that were shipped are trained again, each step has one line, the bits are the same', async () => {
    const whole = await trainHere()
    await ship(0, 3)
    const killed = await train({ ckpt: { interval: 2 } }, { at: 'Step 3 ', by: 'SIGKILL' })
    expect(killed.status).toBeNull()
    const saved = readdirSync(join(folder, 'out', 'checkpoints')).filter((name) =>
      existsSync(join(folder, 'out', 'checkpoints', name, 'trainer', 'COMPLETE')),
    )
    expect(saved).toContain('step_2')
    await ship(4, 5)
    const next = await train({ ckpt: { interval: 2, resume_step: -1 } })
    expect([next.status, next.err]).toEqual([0, ''])
    expect(weightsOf('out')).toBe(whole)
    expect(stepsOf('out')).toEqual([0, 1, 2, 3, 4, 5])
    expect(readdirSync(broadcastsOf('out'))).toEqual(['step_6'])
  })

  it('takes batches over sockets: killed, with an orchestrator that is another one afterwards, it comes to the bits of a run that never stopped', async () => {
    const whole = await trainHere()
    const transport = { type: 'zmq', host: '127.0.0.1', port: 18_931, hwm: 3 } as const
    const rollouts = join(folder, 'out', 'run_default', 'rollouts')
    const changes = { rollout_transport: transport, ckpt: { interval: 2 } }
    const before = await openRolloutSender({ transport, rollouts, firstStep: 0 })
    const signal = AbortSignal.timeout(30_000)
    const shipping = (async () => {
      for (let step = 0; step < 4; step++) await before.send(step, made(step).samples, {}, signal)
    })()
    const killed = await train(changes, { at: 'Step 3 ', by: 'SIGKILL' })
    expect(killed.status).toBeNull()
    await shipping
    await before.dispose()
    const after = await openRolloutSender({ transport, rollouts, firstStep: 2 })
    for (const step of [4, 5]) await after.send(step, made(step).samples, {}, AbortSignal.timeout(100))
    const next = await train({ ...changes, ckpt: { interval: 2, resume_step: -1 } })
    expect([next.status, next.err]).toEqual([0, ''])
    await after.delivered(signal)
    await after.dispose()
    expect(signal.aborted).toBe(false)
    expect(weightsOf('out')).toBe(whole)
    expect(stepsOf('out')).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('says at once that its port is taken, and by which key', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 18_934 }, resolve))
    const { status, err, events } = await train({ rollout_transport: { type: 'zmq', port: 18_931 } })
    server.close()
    expect(status).toBe(1)
    expect(JSON.parse(err)).toMatchObject({
      code: 'PORT_IN_USE',
      path: 'rollout_transport.port',
      message: expect.stringContaining('18934'),
    })
    expect(events.map(({ kind }) => kind)).toEqual(['failed'])
    // Nothing that keeps the next start from the folder.
    expect(readdirSync(join(folder, 'out')).flatMap((name) => readdirSync(join(folder, 'out', name)))).toEqual([])
  })

  it('fails with the cause that its thread or its transport has, and says so to its launcher', async () => {
    const sender = createRolloutSender(join(folder, 'out', 'run_default', 'rollouts'))
    await sender.send(
      0,
      made(0).samples.map((sample) => ({ ...sample, profile: 'bf16' })),
      {},
    )
    const foreign = await train({})
    expect(foreign.status).toBe(1)
    expect(JSON.parse(foreign.err)).toMatchObject({ code: 'SAMPLE_INVALID', message: expect.stringContaining('bf16') })
    expect(foreign.events).toContainEqual(
      expect.objectContaining({ kind: 'failed', error: expect.objectContaining({ code: 'SAMPLE_INVALID' }) }),
    )
    await ship(0, 1, 'torn')
    writeFileSync(join(folder, 'torn', 'run_default', 'rollouts', 'step_1', 'train_rollouts.bin'), 'no message pack')
    const torn = await train({ output_dir: 'torn' })
    expect(JSON.parse(torn.err)).toMatchObject({ code: 'ROLLOUTS_INVALID' })
    expect(stepsOf('torn')).toEqual([0])
    const missing = await train({ model: { name: 'nowhere' }, output_dir: 'none' })
    expect(JSON.parse(missing.err)).toMatchObject({ code: 'MODEL_NOT_FOUND' })
    expect(existsSync(join(folder, 'none'))).toBe(false)
  })

  it('measures without an orchestrator', async () => {
    const { status, events } = await train({
      max_steps: 4,
      ckpt: null,
      bench: { output_json: 'bench.json' },
      data: { fake: { batch_size: 2, generate_samples: true } },
    })
    expect(status).toBe(0)
    expect(JSON.parse(readFileSync(join(folder, 'bench.json'), 'utf8'))).toMatchObject({ steps: 3, tokens_per_second: expect.any(Number) })
    expect(
      events
        .flatMap((event) => (event.kind === 'step' ? Object.keys(event.values) : []))
        .filter((name) => /mismatch_kl\//.test(name) && !/masked/.test(name)),
    ).toEqual([])
  })
})
