import { invariant } from '@trilithon/core'
import { CounterRandom } from '@trilithon/tensor'
import type { DocumentSource } from './document-source.ts'

export interface FakeDocumentsOptions {
  readonly vocabularySize: number
  readonly seqLen: number
  /** `fixed`: every document fills a row; `variable`: 2 tokens to a row. */
  readonly length: 'fixed' | 'variable'
  /** `increasing`: document n is the token n throughout; `random`: any tokens. */
  readonly input_ids: 'increasing' | 'random'
  readonly seed?: number
}

/** Documents of a made-up pass: enough that a run does not see one twice. */
const rows = 1_000_000

/** Made-up tokens for measurements. A document follows from its number. */
export function createFakeDocuments({ vocabularySize, seqLen, length, input_ids, seed = 0 }: FakeDocumentsOptions): DocumentSource {
  invariant(vocabularySize >= 1 && seqLen >= 2, `no made-up documents of ${seqLen} tokens out of ${vocabularySize}`)
  return {
    rows,
    read({ epoch, row }) {
      const number = epoch * rows + row
      const random = new CounterRandom(seed, `fake/${number}`)
      const tokens = length === 'fixed' ? seqLen : 2 + Math.floor(random.uniform(0) * (seqLen - 1))
      const token = (index: number) =>
        input_ids === 'increasing' ? number % vocabularySize : Math.floor(random.uniform(index + 1) * vocabularySize)
      const ids = Uint32Array.from({ length: tokens }, (_, index) => token(index))
      const mask = new Uint8Array(tokens).fill(1, 1)
      return { ids, mask, where: `fake:${number + 1}`, cut: 0 }
    },
    close: () => undefined,
  }
}
