import { busyPorts } from './check-ports.ts'

/** The first of `count` neighbouring ports that are free: those from `wanted` on where they are, else others. */
export async function freePorts(host: string | null, wanted: number, count: number): Promise<number> {
  // Below the range that systems take ports for connections from.
  const lowest = 10_240
  const highest = 32_000 - count
  let first = wanted
  for (let attempt = 0; attempt < 100; attempt++) {
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if ((await busyPorts(host, ports)).length === 0) return first
    first = lowest + Math.floor(Math.random() * (highest - lowest))
  }
  // Whoever listens there says what is wrong.
  return first
}
