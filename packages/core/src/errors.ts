/**
 * The one error class of the project and its catalogue of codes.
 *
 * A code is stable: it is searched for, documented in `docs/errors.md`, crosses from C++ and decides the exit status.
 */

/** Exit statuses of the command line: 1 the run failed, 2 configuration or usage, 3 not available here. */
export type ExitStatus = 1 | 2 | 3

/** Every code with the exit status of a process that ends by it. `docs/errors.md` has one heading per code. */
export const errorCodes = {
  CONFIG_INVALID: 2,
  CONFIG_FILE_UNREADABLE: 2,
  CONFIG_SYNTAX_INVALID: 2,
  CONFIG_CYCLE: 2,
  CONFIG_ROOT_WRONG: 2,
  CONFIG_KEY_DUPLICATE: 2,
  CONFIG_KEY_UNKNOWN: 2,
  CONFIG_VALUE_INVALID: 2,
  CONFIG_VALUE_CONFLICT: 2,
  USAGE_INVALID: 2,
  OUTPUT_UNUSABLE: 2,
  MODEL_NOT_FOUND: 2,
  MODEL_UNSUPPORTED: 2,
  MODEL_CONFIG_INVALID: 2,
  CHECKPOINT_INVALID: 1,
  CHECKPOINT_WRITE_FAILED: 1,
  TOKENIZER_INVALID: 2,
  TEXT_NOT_ENCODABLE: 1,
  CHAT_TEMPLATE_INVALID: 2,
  MESSAGES_INVALID: 1,
  DATA_NOT_FOUND: 2,
  DATA_INVALID: 2,
  SAMPLE_INVALID: 1,
  LOSS_INVALID: 2,
  ADVANTAGE_INVALID: 2,
  PLUGIN_NOT_FOUND: 2,
  PLUGIN_INVALID: 2,
  PLUGIN_LOAD_FAILED: 2,
  PLUGIN_CHECK_FAILED: 2,
  PLUGIN_ORDER_CYCLE: 2,
  CLAIM_CONFLICT: 2,
  SEAM_CONFLICT: 2,
  SEAM_UNFILLED: 2,
  FEATURE_UNAVAILABLE: 3,
  KERNEL_UNAVAILABLE: 3,
  NATIVE_UNAVAILABLE: 3,
  NATIVE_ARGUMENT_INVALID: 1,
  NATIVE_HANDLE_DISPOSED: 1,
  NATIVE_MEMORY_EXHAUSTED: 1,
  NATIVE_ABORTED: 1,
  PLUGIN_FAILED: 1,
  PLUGIN_DISPOSED: 1,
  KV_KEY_INVALID: 1,
  KV_BLOCK_INVALID: 1,
  REPLAY_REFUSED: 3,
  PAYLOAD_INVALID: 1,
  REQUEST_INVALID: 1,
  WEIGHTS_INVALID: 1,
  WEIGHTS_NOT_PREPARED: 1,
  ROLLOUTS_INVALID: 1,
  ENVIRONMENT_INVALID: 2,
  ENGINE_FAILED: 1,
  PORT_IN_USE: 2,
  RESUME_IMPOSSIBLE: 2,
  ROLE_ENDED: 1,
  BATCHES_EMPTY: 1,
  TASK_FAILED: 1,
  INVARIANT_BROKEN: 1,
} as const satisfies Record<string, ExitStatus>

export type ErrorCode = keyof typeof errorCodes

/** Where a value came from: a place in a file (1-based), a flag of the command line, or a variable of the environment. */
export type Source =
  | { readonly kind: 'file'; readonly file: string; readonly line: number; readonly column: number }
  | { readonly kind: 'flag'; readonly flag: string }
  | { readonly kind: 'environment'; readonly variable: string }

/** `rl.toml:12`, `--max-steps`, `$PRIME_LOG_LEVEL`: how a source is named in a message. */
export function formatSource(source: Source): string {
  switch (source.kind) {
    case 'file':
      return `${source.file}:${source.line}`
    case 'flag':
      return source.flag
    case 'environment':
      return `$${source.variable}`
  }
}

export interface TrilithonErrorOptions {
  /** Dotted configuration path, file path or `op.argument` that the problem is about. */
  readonly path?: string | undefined
  /** Where the offending value was written. */
  readonly source?: Source | undefined
  /** What to do next: one imperative sentence. */
  readonly hint?: string | undefined
  readonly cause?: unknown
  /** Facts for machines; a plugin puts its own reason in `details.reason`. JSON-serialisable. */
  readonly details?: Readonly<Record<string, unknown>> | undefined
  /** The single problems where one error reports several (`CONFIG_INVALID`). */
  readonly problems?: readonly TrilithonError[] | undefined
}

const brand = Symbol.for('@trilithon/error')

/**
 * What happened (`message`, with values), where (`path`, `source`) and what next (`hint`).
 *
 * Recognise one with `TrilithonError.is`, never with `instanceof`: two copies of core may be installed.
 */
export class TrilithonError extends Error {
  readonly code: ErrorCode
  readonly path: string | undefined
  readonly source: Source | undefined
  readonly hint: string | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly problems: readonly TrilithonError[]
  readonly [brand] = true

  constructor(code: ErrorCode, message: string, options: TrilithonErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'TrilithonError'
    this.code = code
    this.path = options.path
    this.source = options.source
    this.hint = options.hint
    this.details = options.details
    this.problems = options.problems ?? []
  }

  static is(error: unknown, code?: ErrorCode): error is TrilithonError {
    return typeof error === 'object' && error !== null && brand in error && (code === undefined || (error as TrilithonError).code === code)
  }

  /** Exit status of a process that ends by this error: that of its problems where they agree. */
  get exitStatus(): ExitStatus {
    const [first, ...others] = this.problems
    if (first !== undefined && others.every((problem) => problem.exitStatus === first.exitStatus)) return first.exitStatus
    // A code of a newer core that this copy does not know.
    return errorCodes[this.code] ?? 1
  }

  toJSON(): Record<string, unknown> {
    const { code, message, path, source, hint, details, problems } = this
    return {
      code,
      message,
      path,
      source,
      hint,
      details,
      ...(problems.length > 0 ? { problems: problems.map((problem) => problem.toJSON()) } : {}),
    }
  }
}

/** Several problems become one error: the single problem itself, or `CONFIG_INVALID` that carries all of them in order. */
export function combineProblems(problems: readonly TrilithonError[]): TrilithonError {
  const [first] = problems
  invariant(first !== undefined, 'combineProblems needs at least one problem')
  if (problems.length === 1) return first
  return new TrilithonError('CONFIG_INVALID', `${problems.length} problems found`, { problems })
}

/** For our own mistakes, not the world's: throws `INVARIANT_BROKEN` when `condition` is false. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition)
    throw new TrilithonError('INVARIANT_BROKEN', message, {
      hint: 'This is a fault of Trilithon; report it with the command that led here.',
    })
}
