import assert from 'node:assert/strict'
import type { KVBlock, KVKey, KVSelector, KVStore } from '@trilithon/core'
import fc from 'fast-check'
import { assertProperty } from './assert-property.ts'
import { fakeBlock, fakeExperts, fakeKey } from './fake-kv-block.ts'
import { assertHit, assertMiss, type KVStoreContext, putOne, settledLookup } from './kv-store-context.ts'

/*
 * Random calls, one after the other, on a store and on a model of its contract: a list in order of use.
 */

const capacityBytes = 200

const keys: readonly KVKey[] = Array.from({ length: 8 }, (_, index) =>
  fakeKey(String(index >> 1), { salt: index % 2 === 0 ? 'even' : 'odd', tenant: index < 4 ? 'one' : 'two' }),
)

type Operation =
  | { readonly kind: 'put'; readonly key: KVKey; readonly block: KVBlock }
  | { readonly kind: 'get'; readonly key: KVKey; readonly wrongSize: boolean }
  | { readonly kind: 'lookup' }
  | { readonly kind: 'invalidate'; readonly selector: KVSelector }

const key = fc.constantFrom(...keys)

const block = fc
  .record({
    seed: fc.nat(1000),
    length: fc.oneof({ weight: 9, arbitrary: fc.nat(90) }, fc.integer({ min: 180, max: 210 })),
    rows: fc.nat(4),
    max: fc.nat(3),
  })
  .map(({ seed, length, rows, max }) =>
    fakeBlock(seed, length, { versions: { min: 0, max }, ...(rows === 0 ? {} : { experts: fakeExperts(seed, rows) }) }),
  )

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), key, block }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('get' as const), key, wrongSize: fc.nat(5).map((dice) => dice === 0) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lookup' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('invalidate' as const),
      selector: fc.record(
        { salt: fc.constantFrom('even', 'odd'), tenant: fc.constantFrom('one', 'two'), olderThanVersion: fc.nat(4) },
        { requiredKeys: [] },
      ),
    }),
  },
)

/** K1 to K10 in any order of calls. */
export async function checkAgainstModel(context: KVStoreContext): Promise<void> {
  await assertProperty(
    fc.array(operation, { maxLength: 50, size: 'max' }),
    async (operations) => {
      const { store } = await context.open(capacityBytes)
      const model = new KVStoreModel()
      for (const step of operations) {
        await apply(store, model, step)
        assert.deepEqual(store.stats(), model.stats())
      }
      assert.deepEqual(
        await settledLookup(store, keys),
        keys.map((each) => (model.find(each) === undefined ? 'no' : 'yes')),
      )
    },
    60,
  )
}

async function apply(store: KVStore, model: KVStoreModel, step: Operation): Promise<void> {
  switch (step.kind) {
    case 'put':
      assert.equal((await putOne(store, step.key, step.block)).status, model.put(step.key, step.block))
      return
    case 'get': {
      const held = model.get(step.key, step.wrongSize)
      if (held === undefined) return assertMiss(store, step.key, 'absent')
      if (step.wrongSize) return assertMiss(store, step.key, 'size', held.bytes.length + 1)
      return assertHit(store, step.key, held)
    }
    case 'lookup':
      await settledLookup(store, keys)
      return
    case 'invalidate':
      assert.equal(await store.invalidate(step.selector), model.invalidate(step.selector))
      return
  }
}

interface Held {
  readonly key: KVKey
  readonly block: KVBlock
}

class KVStoreModel {
  /** Least recently used first. */
  #held: readonly Held[] = []
  #hits = 0
  #misses = 0
  #evictions = 0

  find(wanted: KVKey): Held | undefined {
    return this.#held.find(({ key: held }) => held === wanted)
  }

  put(wanted: KVKey, given: KVBlock): 'stored' | 'exists' | 'refused' {
    const held = this.find(wanted)
    if (held !== undefined) {
      this.#use(held)
      return 'exists'
    }
    if (sizeOf(given) > capacityBytes) return 'refused'
    while (this.#bytes() + sizeOf(given) > capacityBytes) {
      this.#held = this.#held.slice(1)
      this.#evictions++
    }
    this.#held = [...this.#held, { key: wanted, block: given }]
    return 'stored'
  }

  get(wanted: KVKey, wrongSize: boolean): KVBlock | undefined {
    const held = this.find(wanted)
    if (held === undefined || wrongSize) this.#misses++
    else {
      this.#hits++
      this.#use(held)
    }
    return held?.block
  }

  invalidate({ salt, tenant, olderThanVersion }: KVSelector): number {
    const before = this.#held.length
    this.#held = this.#held.filter(
      ({ key: { salt: heldSalt, tenant: heldTenant }, block: { versions } }) =>
        !(
          (salt === undefined || salt === heldSalt) &&
          (tenant === undefined || tenant === heldTenant) &&
          (olderThanVersion === undefined || versions.max < olderThanVersion)
        ),
    )
    return before - this.#held.length
  }

  stats(): ReturnType<KVStore['stats']> {
    return {
      blocks: this.#held.length,
      bytes: this.#bytes(),
      capacityBytes,
      hits: this.#hits,
      misses: this.#misses,
      corrupt: 0,
      evictions: this.#evictions,
    }
  }

  #use(used: Held): void {
    this.#held = [...this.#held.filter((held) => held !== used), used]
  }

  #bytes(): number {
    return this.#held.reduce((sum, { block: held }) => sum + sizeOf(held), 0)
  }
}

const sizeOf = ({ bytes, experts }: KVBlock): number => bytes.length + (experts?.data.length ?? 0)
