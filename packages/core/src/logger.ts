/** Levels in rising order: *debug* the rest; *info* state changes; *warn* degraded but running; *error* a human must act. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export type LogFields = Readonly<Record<string, unknown>>

/** Messages are constants, values are fields: `log.info('weights published', { version, bytes, ms })`. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A logger that adds `fields` to every line. */
  child(fields: LogFields): Logger
}

const nothing = () => undefined

/** Core and plugins are silent unless the runtime hands them a logger. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silentLogger }
