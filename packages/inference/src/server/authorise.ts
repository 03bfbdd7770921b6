import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { TrilithonError } from '@trilithon/core'

/** Whether only this machine reaches that address; a name is taken to be reached by others, unless it is `localhost`. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

/** The key that requests must bring; null where none is needed. Throws `CONFIG_VALUE_INVALID` where others could reach a server without a key. */
export function resolveApiKey(host: string, variable: string, environment: NodeJS.ProcessEnv): string | null {
  const key = environment[variable]
  if (key !== undefined && key !== '') return key
  if (isLoopback(host)) return null
  throw new TrilithonError(
    'CONFIG_VALUE_INVALID',
    `the server would listen on ${host}, which other machines reach, and $${variable} holds no key`,
    {
      path: 'server.host',
      hint: `Set ${variable} here and for the clients, or remove server.host to serve this machine alone.`,
    },
  )
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** Whether the header `Authorization` brings that key; takes as long for a wrong one as for the right one. */
export function createKeyCheck(key: string): (header: string | undefined) => boolean {
  const expected = digest(key)
  return (header) => {
    const given = /^bearer +(\S+)\s*$/i.exec(header ?? '')?.[1]
    return given !== undefined && timingSafeEqual(digest(given), expected)
  }
}
