import { type LogFields, type Logger, type LogLevel, logLevels } from '@trilithon/core'

/** One line per message on a stream: time, level, message, fields as JSON. For processes whose output is a file. */
export function createLineLogger(stream: { write(text: string): unknown }, level: LogLevel, fields: LogFields = {}): Logger {
  const lowest = logLevels.indexOf(level)
  const write = (own: LogLevel) => (message: string, more?: LogFields) => {
    if (logLevels.indexOf(own) < lowest) return
    const all = { ...fields, ...more }
    const text =
      Object.keys(all).length === 0
        ? ''
        : ` ${JSON.stringify(all, (_, value) => (value instanceof Error ? (value.stack ?? value.message) : value))}`
    stream.write(`${new Date().toISOString()} ${own.toUpperCase()} ${message}${text}\n`)
  }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (more) => createLineLogger(stream, level, { ...fields, ...more }),
  }
}
