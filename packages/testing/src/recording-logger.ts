import type { LogFields, Logger, LogLevel } from '@trilithon/core'

export interface LogLine {
  readonly level: LogLevel
  readonly message: string
  readonly fields: LogFields
}

/** Keeps what was logged, by itself and by its children, in order. */
export interface RecordingLogger extends Logger {
  readonly lines: readonly LogLine[]
}

export function recordingLogger(): RecordingLogger {
  const lines: LogLine[] = []
  return { ...loggerInto(lines, {}), lines }
}

function loggerInto(lines: LogLine[], bound: LogFields): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    lines.push({ level, message, fields: { ...bound, ...fields } })
  }
  const child = (fields: LogFields) => loggerInto(lines, { ...bound, ...fields })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child }
}
