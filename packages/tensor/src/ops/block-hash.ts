/** Names of KV blocks: a chain of SHA-256 over the tokens of a prefix. Arrays of the host in and out. */
import type { KVKey } from '@trilithon/core'
import { blockHashChain, blockHashDigest, blockHashRoot } from '@trilithon/native'
import { scope } from '../scope.ts'
import { empty, fromArray, type Tensor, toArray } from '../tensor.ts'

const hashBytes = 32

/** The parent of first blocks: it holds every field of a key but the tokens. */
export function kvRootHash(key: Pick<KVKey, 'salt' | 'profile' | 'format' | 'tenant'>): Uint8Array {
  return scope(() => {
    const hash = empty('u8', [hashBytes])
    blockHashRoot({
      salt: textTensor(key.salt).handle,
      profile: textTensor(key.profile).handle,
      format: textTensor(key.format).handle,
      tenant: textTensor(key.tenant).handle,
      hash: hash.handle,
    })
    return toArray(hash) as Uint8Array
  })
}

/** SHA-256 of bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return scope(() => {
    const hash = empty('u8', [hashBytes])
    blockHashDigest({ bytes: fromArray('u8', [bytes.length], bytes).handle, hash: hash.handle })
    return toArray(hash) as Uint8Array
  })
}

/** The hash of each full block of `tokens` that follows a block (or root) with hash `parent`. */
export function kvBlockHashes(parent: Uint8Array, tokens: Int32Array, blockSize: number): readonly Uint8Array[] {
  return scope(() => {
    const count = Math.floor(tokens.length / blockSize)
    const hashes = empty('u8', [count, hashBytes])
    blockHashChain({
      parent: fromArray('u8', [parent.length], parent).handle,
      tokens: fromArray('i32', [tokens.length], tokens).handle,
      hashes: hashes.handle,
      blockSize,
    })
    const all = toArray(hashes) as Uint8Array
    return Array.from({ length: count }, (_, index) => all.slice(index * hashBytes, (index + 1) * hashBytes))
  })
}

function textTensor(text: string): Tensor {
  const bytes = new TextEncoder().encode(text)
  return fromArray('u8', [bytes.length], bytes)
}
