import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { type ErrorCode, TrilithonError } from '@trilithon/core'
import type { RoleEnd, RolePlan } from './launcher.ts'
import type { RoleProcess } from './role-process.ts'

/** A role that has ended, or has to be ended, against the plan. */
export interface RoleFailure {
  readonly role: RoleProcess
  readonly end: RoleEnd | undefined
  /** Why it is ended by us. */
  readonly reason?: string
}

/** What a role fails with when another one has gone: a consequence, if anything else failed at the same time. */
const consequences: readonly ErrorCode[] = ['ENGINE_FAILED']

/** Whether a role failed for want of another one, by what it says. */
export function isConsequence({ role }: RoleFailure): boolean {
  return role.failure !== undefined && consequences.includes(role.failure.code)
}

/** Of failures that came at about the same time the one that explains the others: first a death without a word, then in their order. */
export function firstCause(failures: readonly RoleFailure[]): RoleFailure | undefined {
  return failures.find(({ end }) => end?.signal != null) ?? failures.find((failure) => !isConsequence(failure)) ?? failures[0]
}

/** `ROLE_ENDED` with the role, its first error and its log. */
export function roleEnded(failed: RoleFailure, workingDirectory: string): TrilithonError {
  const { role, end } = failed
  const { plan, failure } = role
  const log = logOf(plan, workingDirectory)
  const details = { role: plan.name, log: plan.log, status: end?.status ?? null, signal: end?.signal ?? null, error: failure?.toJSON() }
  const look = `Read ${log}.`
  const message = `the ${plan.name} ${causeOf(failed)}`
  if (failure === undefined) return new TrilithonError('ROLE_ENDED', message, { hint: look, details })
  return new TrilithonError('ROLE_ENDED', message, {
    path: failure.path,
    source: failure.source,
    hint: failure.hint === undefined ? look : `${failure.hint} The log: ${log}.`,
    details,
    cause: failure,
  })
}

/** What became of a role, as the rest of a sentence that begins with its name. */
export function causeOf({ role: { plan, failure }, end, reason }: RoleFailure): string {
  if (failure !== undefined) return `failed with ${failure.code}: ${failure.message}`
  const last = lastWords(plan.log)
  return `${reason ?? wordsFor(end)}${last === undefined ? '' : `; its last words: ${last}`}`
}

/** The log of a role as the user would write it. */
export function logOf(plan: RolePlan, workingDirectory: string): string {
  return relative(workingDirectory, plan.log) || plan.log
}

function wordsFor(end: RoleEnd | undefined): string {
  if (end?.signal != null) return `was ended by ${end.signal}`
  if (end?.status === 0) return 'ended before the run was over'
  return `ended with exit status ${end?.status ?? 'unknown'}`
}

/** The last line of a log that is neither empty nor part of what is above it: a stack, the fields of a line. */
function lastWords(path: string): string | undefined {
  const lines = readFileSync(path, 'utf8').slice(-8192).trim().split('\n')
  // Node prints what was thrown before the stack, its version after.
  const thrown = lines.findLast((line) => /^(?:\w*Error|Uncaught)\b.*:/.test(line))
  const last = thrown ?? lines.findLast((line) => line.trim() !== '' && !/^\s|^Node\.js v/.test(line))
  return last === undefined || last === '' ? undefined : last.slice(0, 300)
}
