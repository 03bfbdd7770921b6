import { type ErrorCode, TrilithonError } from '@trilithon/core'

/** A refusal in the form of the ops: where, which argument, what was expected, what was given. */
export function refuse(op: string, argument: string, expected: string, given: string, code: ErrorCode = 'NATIVE_ARGUMENT_INVALID'): never {
  throw new TrilithonError(code, `${op}: ${argument}: expected ${expected}, given ${given}`, {
    path: `${op}.${argument}`,
    details: { op, argument, expected, given },
  })
}
