import { embeddingBackward, embeddingForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'

/** Rows of `table` ([vocabulary, width]) by `ids` (i32 [tokens]): [tokens, width]. */
export function embedding(ids: Tensor, table: Tensor): Tensor {
  return atomic(() => {
    const y = empty(table.dtype, [ids.dim(0), table.dim(1)])
    embeddingForward({ ids: ids.handle, table: table.handle, y: y.handle })
    recorder(table)?.add('embedding', [ids, table], [y], [ids], gradient)
    return y
  })
}

function gradient(step: BackwardStep): void {
  const { tensors, accumulate } = step.into([1])
  embeddingBackward({
    dY: step.gradient(0).handle,
    ids: step.held(0).handle,
    dTable: (tensors[0] as Tensor).handle,
    accumulate,
  })
}
