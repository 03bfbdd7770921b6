import { type KVStoreCaseName, kvStoreCases } from './kv-store-cases.ts'
import { type KVStoreContext, type MakeKVStore, openKVStoreContext } from './kv-store-context.ts'
import { describeSuite, type SuiteOptions } from './suite.ts'

/**
 * Holds a KV store to the contract of the seam: every sentence of it has at least one case.
 *
 *     describeKVStore('my store', (capacityBytes) => ({ store: new MyStore(capacityBytes), corrupt: (key) => … }))
 */
export function describeKVStore(title: string, make: MakeKVStore, options: SuiteOptions<KVStoreContext, KVStoreCaseName> = {}): void {
  describeSuite(title, kvStoreCases, async () => openKVStoreContext(make), options)
}
