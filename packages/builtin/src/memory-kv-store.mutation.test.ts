import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describeMutants, kvStoreCases, type Mutant, openKVStoreContext, runCases } from '@trilithon/testing'
import { corruptStored } from '../test/corrupt-stored.ts'

const file = 'memory-kv-store.ts'

const mutants: readonly Mutant[] = [
  {
    sentence: 'K1',
    name: 'gives no experts back',
    file,
    search: "return { status: 'hit', ...copyOfExperts(block),",
    replace: "return { status: 'hit',",
  },
  { sentence: 'K1', name: 'says one dtype for all experts', file, search: 'dtype: experts.dtype', replace: "dtype: 'uint8' as const" },
  { sentence: 'K1', name: 'hands its own experts out', file, search: '...copyOfExperts(block), checksum', replace: '...block, checksum' },
  {
    sentence: 'K1',
    name: 'hands its own versions out',
    file,
    search: 'checksum: block.checksum, versions: { ...block.versions } }',
    replace: 'checksum: block.checksum, versions: block.versions }',
  },
  {
    sentence: 'K2',
    name: 'forgets where a field ends',
    file,
    search: 'return `$',
    replace: "return [hashText, salt, profile, format, tenant].join('') || `$",
  },
  { sentence: 'K2', name: 'forgets the tenant', file, search: '{tenant}`', replace: "{''}`" },
  {
    sentence: 'K2',
    name: 'compares 31 bytes of the hash',
    file,
    search: "hash.length).toString('latin1')",
    replace: "31).toString('latin1')",
  },
  {
    sentence: 'K3',
    name: 'lets the second put win',
    file,
    search: "return { status: 'exists' }",
    replace: 'this.#remove(name, held.block)',
  },
  {
    sentence: 'K3',
    name: 'calls a second put stored',
    file,
    search: "return { status: 'exists' }",
    replace: "return { status: 'stored' }",
  },
  { sentence: 'K4', name: 'keeps the bytes of the caller', file, search: 'bytes: copyOf(block.bytes)', replace: 'bytes: block.bytes' },
  { sentence: 'K4', name: 'copies by slice, which shares a Buffer', file, search: 'new Uint8Array(bytes)', replace: 'bytes.slice()' },
  {
    sentence: 'K4',
    name: 'keeps the versions of the caller',
    file,
    search: 'checksum: block.checksum,\n  versions: { ...block.versions }',
    replace: 'checksum: block.checksum,\n  versions: block.versions',
  },
  { sentence: 'K5', name: 'serves corrupt blocks', file, search: 'if (checksumOf(block) !== block.checksum) {', replace: 'if (false) {' },
  {
    sentence: 'K5',
    name: 'keeps corrupt blocks',
    file,
    search: 'this.#remove(name, block)\n      this.#corrupt++',
    replace: 'this.#corrupt++',
  },
  {
    sentence: 'K5',
    name: 'fills the slot before it looks at the checksum',
    file,
    search: 'if (checksumOf(block) !== block.checksum) {',
    replace: 'into.set(block.bytes)\n    if (checksumOf(block) !== block.checksum) {',
  },
  { sentence: 'K5', name: 'does not count corrupt blocks', file, search: 'this.#corrupt++', replace: '' },
  {
    sentence: 'K6',
    name: 'fills a slot that is longer than the block',
    file,
    search: 'if (into.length !== block.bytes.length)',
    replace: 'if (into.length < block.bytes.length)',
  },
  {
    sentence: 'K6',
    name: 'drops the block that does not fit the slot',
    file,
    search: "if (into.length !== block.bytes.length) return this.#miss('size')",
    replace: "if (into.length !== block.bytes.length) return (this.#remove(name, block), this.#miss('size'))",
  },
  {
    sentence: 'K7',
    name: 'answers puts in reverse',
    file,
    search: 'return named.map(({ name, key, block }) => this.#store(name, key, block))',
    replace: 'return named.map(({ name, key, block }) => this.#store(name, key, block)).reverse()',
  },
  {
    sentence: 'K7',
    name: 'leaves misses out',
    file,
    search: 'return named.map(({ name, into }) => this.#read(name, into))',
    replace: "return named.map(({ name, into }) => this.#read(name, into)).filter(({ status }) => status === 'hit')",
  },
  {
    sentence: 'K8',
    name: 'exceeds its budget by a byte',
    file,
    search: 'if (this.#bytes + size <= this.#capacityBytes) return',
    replace: 'if (this.#bytes + size <= this.#capacityBytes + 1) return',
  },
  {
    sentence: 'K8',
    name: 'leaves a byte of its budget empty',
    file,
    search: 'if (this.#bytes + size <= this.#capacityBytes) return',
    replace: 'if (this.#bytes + size < this.#capacityBytes) return',
  },
  {
    sentence: 'K8',
    name: 'does not count experts',
    file,
    search: 'block.bytes.length + (block.experts?.data.length ?? 0)',
    replace: 'block.bytes.length',
  },
  {
    sentence: 'K8',
    name: 'evicts by age instead of use',
    file,
    search: 'this.blocks.use(name, held)\n    this.#hits++',
    replace: 'this.#hits++',
  },
  {
    sentence: 'K8',
    name: 'takes an exists for no use',
    file,
    search: "this.blocks.use(name, held)\n      return { status: 'exists' }",
    replace: "return { status: 'exists' }",
  },
  {
    sentence: 'K8',
    name: 'empties itself for a block that can never fit',
    file,
    search: 'if (size > this.#capacityBytes)',
    replace: 'this.#makeRoom(size)\n    if (size > this.#capacityBytes)',
  },
  { sentence: 'K8', name: 'does not count evictions', file, search: 'this.#evictions++', replace: '' },
  {
    sentence: 'K9',
    name: 'takes a lookup for a use',
    file,
    search: "return keys.map((key) => (this.blocks.has(nameOfKey(key)) ? 'yes' : 'no'))",
    replace:
      "return keys.map((key) => {\n      const held = this.blocks.peek(nameOfKey(key))\n      if (held !== undefined) this.blocks.use(nameOfKey(key), held)\n      return held === undefined ? 'no' : 'yes'\n    })",
  },
  { sentence: 'K9', name: 'says yes to every key', file, search: "? 'yes' : 'no'", replace: "? 'yes' : 'yes'" },
  {
    sentence: 'K10',
    name: 'invalidates the version that still counts',
    file,
    search: 'block.versions.max >= olderThanVersion',
    replace: 'block.versions.max > olderThanVersion',
  },
  {
    sentence: 'K10',
    name: 'judges a block by its oldest weights',
    file,
    search: 'block.versions.max >= olderThanVersion',
    replace: 'block.versions.min >= olderThanVersion',
  },
  {
    sentence: 'K10',
    name: 'overlooks the tenant',
    file,
    search: 'if (tenant !== undefined && held.tenant !== tenant) continue',
    replace: '',
  },
  {
    sentence: 'K10',
    name: 'keeps the bytes of invalidated blocks on its books',
    file,
    search: 'this.#remove(name, block)\n      count++',
    replace: 'this.blocks.delete(name)\n      count++',
  },
  { sentence: 'K11', name: 'takes a longer hash', file, search: 'if (hash.length !== 32)', replace: 'if (hash.length < 32)' },
  {
    sentence: 'K11',
    name: 'stores what comes before a bad entry',
    file,
    search: 'for (const { block } of named) assertIntact(block)',
    replace: 'for (const { name, key, block } of named) {\n      assertIntact(block)\n      this.#store(name, key, block)\n    }',
  },
  {
    sentence: 'K11',
    name: 'does not check the checksum of experts',
    file,
    search: '(experts === undefined ? crc32(bytes) : crc32(experts.data, crc32(bytes)))',
    replace: 'crc32(bytes)',
  },
  {
    sentence: 'K12',
    name: 'looks before a wait and stores after it',
    file,
    search: 'return named.map(({ name, key, block }) => this.#store(name, key, block))',
    replace:
      'const absent = named.filter(({ name }) => !this.blocks.has(name))\n    await null\n    for (const { name } of absent) this.blocks.delete(name)\n    return named.map(({ name, key, block }) => this.#store(name, key, block))',
  },
  { sentence: 'K13', name: 'answers after dispose', file, search: 'if (this.#disposed)', replace: 'if (false)' },
  { sentence: 'K13', name: 'shows its books after dispose', file, search: "this.#assertLive('stats')", replace: '' },
  { sentence: 'K13', name: 'keeps its memory', file, search: 'this.blocks.clear()', replace: '' },
]

describeMutants('KV store suite', {
  packageRoot: fileURLToPath(new URL('..', import.meta.url)),
  mutants,
  cases: kvStoreCases,
  run: async (sources, cases) => {
    const copy = (await import(pathToFileURL(join(sources, file)).href)) as typeof import('./memory-kv-store.ts')
    return runCases(cases, async () =>
      openKVStoreContext((capacityBytes) => {
        const store = new copy.MemoryKVStore(capacityBytes)
        return { store, corrupt: (key) => corruptStored(store, key) }
      }),
    )
  },
})
