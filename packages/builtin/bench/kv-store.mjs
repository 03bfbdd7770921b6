// @ts-check
/**
 * Throughput of the built-in KV store with blocks of 1 MiB in a full store, so that every put evicts; beside it the limit: CRC-32 and one copy of
 * the same bytes. Build first; then `node bench/kv-store.mjs`.
 */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { silentLogger } from '@trilithon/core'
import { memoryKVStore } from '../dist/index.js'
import { compare, report } from './measure.mjs'

const blockBytes = 1 << 20
const held = 32
const run = { roles: [], workingDirectory: '/', numericsProfile: 'fp32', resolved: {} }
const config = { 'inference.kv_cache_offload': { cpu: { num_bytes: held * blockBytes }, disk: null } }
const store = await memoryKVStore.create({ config, run, needs: {}, log: silentLogger, signal: new AbortController().signal })

const bytes = Uint8Array.from({ length: blockBytes }, (_, index) => (index * 31) & 0xff)
const block = { bytes, checksum: crc32(bytes), versions: { min: 0, max: 0 } }
const slot = new Uint8Array(blockBytes)
let next = 0
const key = (/** @type {number} */ index) => ({
  salt: 'v0',
  profile: 'fp32',
  format: 'bench',
  tenant: 'bench',
  hash: createHash('sha256').update(String(index)).digest(),
})

const puts = {
  calls: held,
  async run() {
    for (let call = 0; call < held; call++) await store.put([{ key: key(next++), block }])
  },
}
const gets = {
  calls: held,
  async run() {
    for (let call = 1; call <= held; call++) {
      const [answer] = await store.get([{ key: key(next - call), into: slot }])
      if (answer?.status !== 'hit') throw new Error('not a hit')
    }
  },
}
let sum = 0
const limit = {
  calls: held,
  run() {
    for (let call = 0; call < held; call++) {
      sum ^= crc32(bytes)
      slot.set(bytes)
    }
  },
}

const rate = (/** @type {number} */ ns) => `${(blockBytes / ns).toFixed(2)} GB/s`
for (const [name, subject] of Object.entries({ put: puts, get: gets })) {
  const { subjectNs, limitNs, ratio, interval } = await compare(subject, limit)
  report(
    `${name}, blocks of 1 MiB: ${rate(subjectNs)}; CRC-32 and copy ${rate(limitNs)}; ratio of times ${ratio.toFixed(2)} (95 %: ${interval.map((each) => each?.toFixed(2)).join(' to ')})`,
  )
}
if (sum !== sum >> 0) throw new Error('the limit was optimised away')
await store.dispose()
