/** The functions that all kernels share, element by element, x without gaps. No gradient flows through them. */
import {
  elementaryCos,
  elementaryExp,
  elementaryLog,
  elementaryRsqrt,
  elementarySigmoid,
  elementarySilu,
  elementarySin,
} from '@trilithon/native'
import { atomic } from '../scope.ts'
import { refuseRecording } from '../tape.ts'
import { emptyLike, type Tensor, viewOf } from '../tensor.ts'

const functions = {
  exp: elementaryExp,
  log: elementaryLog,
  sin: elementarySin,
  cos: elementaryCos,
  rsqrt: elementaryRsqrt,
  sigmoid: elementarySigmoid,
  silu: elementarySilu,
}

export type ElementaryFunction = keyof typeof functions

/** f(x) with the bits that the kernels compute with. */
export function elementary(name: ElementaryFunction, x: Tensor): Tensor {
  refuseRecording('elementary', 'x', x)
  return atomic(() => {
    const y = emptyLike(x)
    const flat = (tensor: Tensor) => viewOf(tensor, [tensor.elements], [1], 0)
    const [from, to] = [x.isContiguous && x.rank !== 1 ? flat(x) : x, y.rank === 1 ? y : flat(y)]
    functions[name]({ x: from.handle, y: to.handle })
    if (from !== x) from.dispose()
    if (to !== y) to.dispose()
    return y
  })
}
