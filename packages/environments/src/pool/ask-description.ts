import { type ErrorCode, errorCodes, TrilithonError } from '@trilithon/core'
import type { FrameClient } from '../protocol/frame-client.ts'
import type { DescriptionMessage, FinalMessage } from '../protocol/messages.ts'
import type { RendererDescription } from '../turn-renderer.ts'

/**
 * Asks what environment is served, and where a renderer is given, whether it can be made there. Rejects with the error of whoever is asked; where nobody
 * answers it waits on.
 */
export function askDescription(frames: FrameClient, renderer: RendererDescription | null): Promise<DescriptionMessage> {
  return new Promise((resolve, reject) => {
    const id = frames.request({ request_type: 'describe', renderer }, (message) => {
      frames.forget(id)
      const { success, error, output } = message as FinalMessage
      if (success) return resolve(output as DescriptionMessage)
      const { type = '', message: reason = 'it cannot be described' } = error ?? {}
      reject(new TrilithonError(Object.hasOwn(errorCodes, type) ? (type as ErrorCode) : 'ENVIRONMENT_INVALID', reason, { path: 'env' }))
    })
  })
}
