// @ts-check
/**
 * What the transport costs: encoding and decoding of rollouts and micro-batches per token, publishing and reading weights against a plain copy of the
 * same bytes, and the time from the last rename to the one who waits.
 *
 *   node tools/bench/transport.mjs [megabytes of weights, 256] [rollouts: nothing else]     (after ./trilithon build)
 *
 * Interleaved rounds in one process: median and range.
 */
import { closeSync, fsyncSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

const {
  createRolloutReceiver,
  createRolloutSender,
  createWeightsPublisher,
  decodeMicroBatches,
  decodeTrainingBatch,
  encodeMicroBatches,
  encodeTrainingBatch,
  openRolloutReceiver,
  openRolloutSender,
  openWeights,
} = await import('../../packages/transport/dist/index.js')

const rounds = 9
const megabytes = Number(process.argv[2] ?? 256)
const folders = ['/dev/shm', tmpdir()].map((parent) => mkdtempSync(join(parent, 'trilithon-bench-')))
const [memory = '', disk = ''] = folders
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN
/** @param {string} name @param {number[]} values @param {string} unit @param {number} digits */
const print = (name, values, unit, digits) =>
  console.log(
    `${name.padEnd(58)} ${median(values).toFixed(digits).padStart(7)} ${unit}  (${Math.min(...values).toFixed(digits)}-${Math.max(...values).toFixed(digits)})`,
  )
/**
 * Milliseconds: of the clock where a disk is waited for, else of the processor, which other work on the machine does not change as much.
 *
 * @param {() => unknown} run @param {'clock' | 'processor'} by
 */
const time = async (run, by) => {
  const [start, startedAt] = [process.cpuUsage(), performance.now()]
  await run()
  const { user, system } = process.cpuUsage(start)
  return by === 'clock' ? performance.now() - startedAt : (user + system) / 1000
}

/** Each in turn, `rounds` times after two that do not count. @param {Record<string, () => unknown>} cases @param {'clock' | 'processor'} [by] */
async function compare(cases, by = 'processor') {
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(Object.keys(cases).map((name) => [name, []]))
  for (let round = -2; round < rounds; round++)
    for (const [name, run] of Object.entries(cases)) {
      const ms = await time(run, by)
      if (round >= 0) times[name]?.push(ms)
    }
  return times
}

console.log(`${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.versions.node}, ${rounds} rounds, median (least-most)`)

/** @param {number} tokens @param {string} id @returns {import('@trilithon/core').Sample} */
const sampleOf = (tokens, id) => ({
  id,
  environment: 'reverse-text',
  promptIds: Uint32Array.from({ length: tokens >> 2 }, (_, token) => (token * 7919) % 150_000),
  completionIds: Uint32Array.from({ length: tokens - (tokens >> 2) }, (_, token) => (token * 104_729) % 150_000),
  mask: new Uint8Array(tokens - (tokens >> 2)).fill(1),
  logprobs: Float32Array.from({ length: tokens - (tokens >> 2) }, (_, token) => -Math.abs(Math.sin(token))),
  temperatures: new Float32Array(tokens - (tokens >> 2)).fill(1),
  versions: new Uint32Array(tokens - (tokens >> 2)).fill(41),
  contextVersionsMin: new Uint32Array(tokens - (tokens >> 2)).fill(40),
  advantage: 0.25,
  reward: 1,
  trainingMode: 'rl',
  profile: 'fp32',
})
/** Batches by files and by sockets, in turn, both ends in this process. Files are on the disk in both; the clock runs until the trainer's end has decoded. */
async function compareTransports() {
  /** @type {readonly (readonly [string, import('@trilithon/core').Sample[]])[]} */
  const batches = [
    ['256 samples of 24 tokens', Array.from({ length: 256 }, (_, index) => sampleOf(24, `sample-${index}`))],
    ['64 samples of 512 tokens', Array.from({ length: 64 }, (_, index) => sampleOf(512, `sample-${index}`))],
    ...[64e6, 131_072 * 75 * 8].map(
      (bytes) => /** @type {const} */ ([`the same with ${(bytes / 1e6).toFixed(0)} MB of expert rows`, withRows(bytes)]),
    ),
  ]
  for (const [index, [name, samples]] of batches.entries()) {
    const transports = /** @type {const} */ ([
      { type: 'filesystem' },
      { type: 'zmq', host: '127.0.0.1', port: 18_221 + 10 * index, hwm: 4 },
    ])
    const ends = await Promise.all(
      transports.map(async (transport) => {
        const rollouts = join(folderOf(transport.type, index), 'rollouts')
        const options = { transport, rollouts, firstStep: 0 }
        const receiver = await openRolloutReceiver(options)
        const sender = await openRolloutSender(options)
        /** @type {{ shipped: number[], received: number[], behind: number[], processor: number[] }} */
        const times = { shipped: [], received: [], behind: [], processor: [] }
        return { transport, receiver, sender, times }
      }),
    )
    await sleep(500)
    for (let step = 0; step < rounds + 2; step++)
      for (const { sender, receiver, times } of ends) {
        const [from, cpu] = [performance.now(), process.cpuUsage()]
        const received = receiver.next().then(() => performance.now())
        await sender.send(step, samples, {})
        const shipped = performance.now()
        const at = await received
        const { user, system } = process.cpuUsage(cpu)
        if (step < 2) continue
        times.shipped.push(shipped - from)
        times.received.push(at - from)
        times.behind.push(at - shipped)
        times.processor.push((user + system) / 1000)
      }
    for (const { transport, sender, receiver, times } of ends) {
      print(`${name}, ${transport.type}: shipped`, times.shipped, 'ms', 1)
      print(`${name}, ${transport.type}: received behind that`, times.behind, 'ms', 1)
      print(`${name}, ${transport.type}: processor time of both ends`, times.processor, 'ms', 1)
      await sender.dispose()
      await receiver.dispose()
    }
    for (const step of Array(rounds + 2).keys())
      for (const { type } of transports) rmSync(join(folderOf(type, index), 'rollouts', `step_${step}`), { recursive: true })
    const ratios = (ends[1]?.times.received ?? []).map((ms, round) => ms / (ends[0]?.times.received[round] ?? Number.NaN))
    print(`${name}: sockets as a multiple of files`, ratios, 'x', 2)
  }
}

/** @param {string} type @param {number} index */
function folderOf(type, index) {
  return join(disk, `${type}-${index}`, 'run_default')
}

/** 64 samples of 512 tokens whose rows have that many bytes together. @param {number} bytes @returns {import('@trilithon/core').Sample[]} */
function withRows(bytes) {
  const each = Math.floor(bytes / 64 / 600) * 600
  return Array.from({ length: 64 }, (_, index) => ({
    ...sampleOf(512, `sample-${index}`),
    routedExperts: { data: new Uint8Array(each).fill(index), shape: [each / 600, 75, 8], dtype: /** @type {const} */ ('uint8') },
  }))
}

for (const [count, tokens] of /** @type {const} */ ([
  [64, 128],
  [64, 2048],
  [4, 65_536],
])) {
  const samples = Array.from({ length: count }, (_, index) => sampleOf(tokens, `sample-${index}`))
  const encoded = encodeTrainingBatch({ step: 1, samples }).bytes
  const times = await compare({ encode: () => encodeTrainingBatch({ step: 1, samples }), decode: () => decodeTrainingBatch(encoded) })
  const per = (/** @type {string} */ name) => (times[name] ?? []).map((ms) => (ms * 1e6) / count / tokens)
  const name = `${count} samples of ${tokens} tokens, ${(encoded.length / count / tokens).toFixed(1)} bytes a token`
  print(`${name}: encode`, per('encode'), 'ns/token', 0)
  print(`${name}: decode`, per('decode'), 'ns/token', 0)
}
{
  const tokens = 16_384
  const values = new Float32Array(tokens).fill(0.5)
  const ids = Uint32Array.from({ length: tokens }, (_, token) => (token * 7919) % 150_000)
  const count = 8
  /** @type {import('@trilithon/core').MicroBatch} */
  const batch = {
    ...{
      inputIds: ids,
      positionIds: ids,
      mask: new Uint8Array(tokens).fill(1),
      advantages: values,
      logprobs: values,
      temperatures: values,
    },
    ...{ versions: ids, contextVersionsMin: ids, sequenceLengths: Array(8).fill(2048), sampleIds: Array(8).fill('sample') },
    ...{ environments: Array(8).fill('reverse-text'), rewards: Array(8).fill(1), trainingMode: 'rl', profile: 'fp32' },
  }
  const batches = Array(count).fill(batch)
  const encoded = encodeMicroBatches(batches)
  const times = await compare({ encode: () => encodeMicroBatches(batches), decode: () => decodeMicroBatches(encoded) })
  for (const name of ['encode', 'decode'])
    print(
      `${count} micro-batches of ${tokens} tokens: ${name}`,
      (times[name] ?? []).map((ms) => (ms * 1e6) / count / tokens),
      'ns/token',
      0,
    )
}
await compareTransports()
if (process.argv[3] === 'rollouts') process.exit()
{
  const samples = Array.from({ length: 64 }, (_, index) => sampleOf(512, `sample-${index}`))
  for (const [name, parent] of [
    ['memory', memory],
    ['disk', disk],
  ]) {
    const rollouts = join(parent ?? '', 'rollouts')
    const sender = createRolloutSender(rollouts)
    const receiver = createRolloutReceiver(rollouts, 0)
    /** @type {number[]} */
    const send = []
    /** @type {number[]} */
    const delay = []
    for (let step = 0; step < rounds; step++) {
      const arrived = receiver.next().then(() => performance.now())
      await sleep(20)
      send.push(await time(() => sender.send(step, samples, {}), 'clock'))
      const sent = performance.now()
      delay.push((await arrived) - sent)
    }
    print(`64 samples of 512 tokens through ${name}: send`, send, 'ms', 1)
    print(`64 samples of 512 tokens through ${name}: sent to decoded`, delay, 'ms', 1)
  }
}

const tensors = Array.from({ length: 16 }, (_, index) => ({
  name: `layer.${index}`,
  dtype: /** @type {const} */ ('F32'),
  shape: [megabytes, 16_384],
}))
const source = new Float32Array(megabytes * 16_384).map((_, index) => index % 1000)
const bytes = source.byteLength * tensors.length
/** @param {number[]} times @param {number} size */
const rate = (times, size) => times.map((ms) => size / ms / 1000)

/** The same bytes by `write` in pieces of the same size. @param {string} path @param {'w' | 'r+'} flags @param {boolean} sync */
function plainWrite(path, flags, sync) {
  const fd = openSync(path, flags)
  const all = new Uint8Array(source.buffer)
  for (let tensor = 0; tensor < tensors.length; tensor++)
    for (let at = 0; at < all.length; at += 1 << 20) writeSync(fd, all, at, Math.min(1 << 20, all.length - at))
  if (sync) fsyncSync(fd)
  closeSync(fd)
}
const into = new Float32Array(source.length)
/** @param {string} path */
function plainRead(path) {
  const fd = openSync(path, 'r')
  for (let tensor = 0; tensor < tensors.length; tensor++)
    readSync(fd, new Uint8Array(into.buffer), 0, into.byteLength, tensor * into.byteLength)
  closeSync(fd)
}
/** @param {string} folder @param {boolean} verifies */
function readAll(folder, verifies) {
  const weights = openWeights(folder)
  for (const { name } of tensors) {
    if (verifies) weights.verify(name)
    weights.read(name, 0, into)
  }
  weights.release()
}

/** @type {import('../../packages/transport/dist/index.js').FillTensor} */
const fill = (_name, first, values) => values.set(source.subarray(first, first + values.length))
for (const [name, parent, dtype] of /** @type {const} */ ([
  ['memory', memory, 'F32'],
  ['memory', memory, 'BF16'],
  ['disk', disk, 'F32'],
])) {
  const broadcasts = join(parent, `broadcasts-${dtype}`)
  const memoryBacked = name === 'memory' ? 'auto' : 'never'
  const size = dtype === 'F32' ? bytes : bytes / 2
  const publisher = createWeightsPublisher({
    ...{ broadcasts, memoryBacked, memoryFolder: memory, profile: 'fp32', keep: 1 },
    tensors: tensors.map((tensor) => ({ ...tensor, dtype })),
  })
  const plain = join(parent, 'plain')
  plainWrite(plain, 'w', false)
  let version = 0
  let folder = ''
  const publish = async () => {
    folder = (await publisher.publish(++version, fill)).folder
    publisher.collect([])
  }
  const times = await compare(
    {
      publish,
      write: () => plainWrite(plain, name === 'memory' ? 'r+' : 'w', name === 'disk'),
      open: () => openWeights(folder).release(),
      read: () => readAll(folder, false),
      verify: () => readAll(folder, true),
      plainRead: () => plainRead(plain),
    },
    name === 'disk' ? 'clock' : 'processor',
  )
  const title = `${(size / 1e6).toFixed(0)} MB of ${dtype} in ${name}`
  print(`${title}: publish`, rate(times.publish ?? [], size), 'MB/s', 0)
  print(`${title}: a plain write of F32 (same pages, fsync on disk)`, rate(times.write ?? [], bytes), 'MB/s', 0)
  print(`${title}: open`, times.open ?? [], 'ms', 2)
  print(`${title}: read`, rate(times.read ?? [], size), 'MB/s', 0)
  print(`${title}: verify and read`, rate(times.verify ?? [], size), 'MB/s', 0)
  print(`${title}: a plain read of F32`, rate(times.plainRead ?? [], bytes), 'MB/s', 0)
  publisher.dispose()
  rmSync(plain)
  rmSync(broadcasts, { recursive: true, force: true })
}
{
  const publisher = createWeightsPublisher({
    ...{ broadcasts: join(disk, 'small'), memoryBacked: 'auto', memoryFolder: memory, profile: 'fp32', keep: 1 },
    tensors: Array.from({ length: 60 }, (_, index) => ({ name: `layer.${index}`, dtype: /** @type {const} */ ('F32'), shape: [75, 75] })),
  })
  let version = 0
  const times = await compare({
    publish: async () => {
      await publisher.publish(++version, fill)
      publisher.collect([])
    },
  })
  print('60 tensors of 5,625 elements in memory: publish and collect', times.publish ?? [], 'ms', 2)
  publisher.dispose()
}
