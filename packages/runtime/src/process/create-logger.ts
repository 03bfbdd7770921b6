import type { LogFields, Logger, LogLevel } from '@trilithon/core'
import type pino from 'pino'

export interface LoggerOptions {
  readonly level: LogLevel
  /** JSON lines instead of text. */
  readonly json: boolean
  /** File descriptor that the lines go to; 2 is standard error. */
  readonly fd?: number
  readonly colors?: boolean
  readonly name?: string
}

/** prime-rl's level names, in any case, as ours. */
export function logLevelOf(name: string): LogLevel {
  switch (name.toLowerCase()) {
    case 'trace':
    case 'debug':
      return 'debug'
    case 'warn':
    case 'warning':
      return 'warn'
    case 'error':
    case 'critical':
      return 'error'
    default:
      return 'info'
  }
}

/** Writes each line before the call returns, so that nothing is lost when the process ends. */
export async function createLogger({ level, json, fd = 2, colors = false, name }: LoggerOptions): Promise<Logger> {
  // Loaded when a process starts to log, not by every dry run.
  const [{ default: pino }, { default: pretty }] = await Promise.all([import('pino'), import('pino-pretty')])
  const stream = json
    ? pino.destination({ fd, sync: true })
    : pretty({ destination: fd, sync: true, colorize: colors, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' })
  return wrap(pino({ level, base: name === undefined ? {} : { name }, serializers: { error: pino.stdSerializers.err } }, stream))
}

function wrap(logger: pino.Logger): Logger {
  const write = (level: LogLevel) => (message: string, fields?: LogFields) => logger[level](fields ?? {}, message)
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => wrap(logger.child(fields)),
  }
}
