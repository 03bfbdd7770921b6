import { QueuedKVStore } from './__fixtures__/queued-kv-store.ts'
import { describeKVStore } from './describe-kv-store.ts'

describeKVStore('a store that works through a queue and cannot be corrupted from outside', (capacityBytes) => ({
  store: new QueuedKVStore(capacityBytes),
}))
