import { describeKVStore } from '@trilithon/testing'
import { corruptStored } from '../test/corrupt-stored.ts'
import { MemoryKVStore } from './memory-kv-store.ts'

describeKVStore('memory KV store', (capacityBytes) => {
  const store = new MemoryKVStore(capacityBytes)
  return { store, corrupt: (key) => corruptStored(store, key) }
})
