import { createServer } from 'node:net'
import { TrilithonError } from '@trilithon/core'

/** The key that a port is chosen by, and its flag. */
interface PortKey {
  readonly path: string
  readonly flag: string
}

const enginePort: PortKey = { path: 'inference.server.port', flag: '--inference.server.port' }

/** A `PORT_IN_USE` for every port that cannot be listened on. The server that takes it later says the same, should another program be faster. */
export async function busyPorts(host: string | null, ports: readonly number[], key: PortKey = enginePort): Promise<TrilithonError[]> {
  const errors = await Promise.all(ports.map((port) => busyPort(host ?? '127.0.0.1', port, key)))
  return errors.flatMap((error) => error ?? [])
}

function busyPort(host: string, port: number, { path, flag }: PortKey): Promise<TrilithonError | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === 'EADDRINUSE' ? 'another program listens there' : cause.message
      const hint = `Choose another with ${flag}, or end the program that has it.`
      resolve(
        new TrilithonError('PORT_IN_USE', `port ${port} of ${host} cannot be used: ${reason}`, {
          path,
          hint,
          cause,
        }),
      )
    })
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}
