/**
 * The error that this package throws. The addon throws it too: the loader hands it a function that makes one.
 */
export type NativeErrorCode = 'NATIVE_UNAVAILABLE' | 'NATIVE_ARGUMENT_INVALID' | 'NATIVE_HANDLE_DISPOSED'

const brand = Symbol.for('@trilithon/error')

export class TrilithonError extends Error {
  readonly code: string
  readonly hint: string | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly [brand] = true

  constructor(code: string, message: string, options: { hint?: string; cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'TrilithonError'
    this.code = code
    this.hint = options.hint
    this.details = options.details
  }
}
