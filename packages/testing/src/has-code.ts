import assert from 'node:assert/strict'
import { type ErrorCode, TrilithonError } from '@trilithon/core'

/** For `assert.throws` and `assert.rejects`: passes an error with that code, and names the one that came instead. */
export const hasCode = (code: ErrorCode) => (error: unknown) => {
  assert.ok(TrilithonError.is(error, code), `expected ${code}, got ${String(error)}`)
  return true
}
