import type { ErrorCode } from '@trilithon/core'
import { expect } from 'vitest'

/** An error with this code, whose message matches. */
export const fails = (code: ErrorCode, message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) })
