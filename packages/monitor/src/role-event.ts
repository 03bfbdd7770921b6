import type { Source } from '@trilithon/core'

/** `TrilithonError.toJSON()` on its way to another process or thread. Plain data. */
export interface PlainError {
  readonly code: string
  readonly message: string
  readonly path?: string | undefined
  readonly source?: Source | undefined
  readonly hint?: string | undefined
  readonly details?: Readonly<Record<string, unknown>> | undefined
  readonly problems?: readonly PlainError[] | undefined
}

/**
 * What a role tells whoever started it. Plain data; `role` is `trainer`, `orchestrator`, `inference`, or a name of its own where there are several.
 *
 * - `ready`: it serves. `url` where others reach it.
 * - `step`: values of one step under prime-rl's names; for the orchestrator the step of a batch that was shipped, or of an evaluation (`eval/…`).
 * - `status`: what it does now. A state that begins with `waiting` is idle time.
 * - `warning`: something that a human should look into while the work goes on, as one line.
 * - `ended`: in order, with all of its work done. `failed`: by that error.
 */
export type RoleEvent =
  | { readonly kind: 'ready'; readonly role: string; readonly url?: string | undefined; readonly detail?: string | undefined }
  | { readonly kind: 'step'; readonly role: string; readonly step: number; readonly values: Readonly<Record<string, number>> }
  | {
      readonly kind: 'status'
      readonly role: string
      readonly state: string
      readonly values: Readonly<Record<string, number>>
      /** Seconds spent in each state so far; the reporter adds it. */
      readonly spent?: Readonly<Record<string, number>> | undefined
    }
  | { readonly kind: 'warning'; readonly role: string; readonly message: string }
  | { readonly kind: 'ended'; readonly role: string }
  | { readonly kind: 'failed'; readonly role: string; readonly error: PlainError }

const kinds: readonly unknown[] = ['ready', 'step', 'status', 'warning', 'ended', 'failed']

/** Whether a message of another process is an event; anything else is not for us. */
export function isRoleEvent(message: unknown): message is RoleEvent {
  if (typeof message !== 'object' || message === null) return false
  const { kind, role } = message as Record<string, unknown>
  return kinds.includes(kind) && typeof role === 'string'
}
