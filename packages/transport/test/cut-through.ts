import { connect, createServer, type Server, type Socket } from 'node:net'

export interface CutThrough {
  /** What comes from now on is lost, until the connections are cut. */
  swallow(): void
  /** Breaks all connections in both directions, with what is on its way. */
  cut(): void
  close(): Promise<void>
}

/** Stands between connections to `from` and a server at `to`, on this machine. */
export async function cutThrough(from: number, to: number): Promise<CutThrough> {
  const sockets = new Set<Socket>()
  let isSwallowing = false
  const server: Server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: to })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('data', (bytes) => {
        if (!isSwallowing && !other.write(bytes)) {
          one.pause()
          other.once('drain', () => one.resume())
        }
      })
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: from }, resolve))
  const cut = () => {
    isSwallowing = false
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    cut,
    swallow: () => {
      isSwallowing = true
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cut()
      }),
  }
}
