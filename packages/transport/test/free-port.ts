import { createServer } from 'node:net'
import { rolloutPorts } from '@trilithon/core'

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })

/** A port that is free with those that the transport takes beside it; below the range that systems take ports for connections from. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 11_000 + Math.floor(Math.random() * 20_000)
    if ((await Promise.all(rolloutPorts(port).map(isFree))).every(Boolean)) return port
  }
}
