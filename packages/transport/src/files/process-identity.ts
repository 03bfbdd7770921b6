import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** A process, so that another one can tell whether it still lives. Numbers of processes are given again, so its start counts too. */
export interface ProcessIdentity {
  /** Machine, boot and process namespace: numbers of processes compare only where this is equal. Characters are those of a file name. */
  readonly host: string
  readonly pid: number
  /** Start in clock ticks since boot; empty where the system does not tell. */
  readonly started: string
}

let own: ProcessIdentity | undefined

export function thisProcess(): ProcessIdentity {
  own ??= { host: readHost(), pid: process.pid, started: startOf(process.pid) ?? '' }
  return own
}

/** Whether the process lives; null where this process cannot know, because it runs elsewhere. */
export function isAlive({ host, pid, started }: ProcessIdentity): boolean | null {
  if (host !== thisProcess().host) return null
  if (started !== '') return startOf(pid) === started
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // A process of somebody else is one.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Field 22 of `/proc/<pid>/stat`, counted behind the name, which may hold anything; undefined without such a process (a zombie is none). */
function startOf(pid: number): string | undefined {
  const stat = readIfThere(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? undefined : fields?.[19]
}

function readHost(): string {
  const boot = readIfThere(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? ''
  const namespace = readIfThere(() => readlinkSync('/proc/self/ns/pid')) ?? ''
  return [hostname(), boot.slice(0, 8), namespace.replace(/\D/g, '')]
    .filter((part) => part !== '')
    .join('.')
    .replace(/[^A-Za-z0-9.]/g, '.')
}

/** Systems without `/proc` are served by what they have; any other failure to read there means the same. */
function readIfThere(read: () => string): string | undefined {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    return undefined
  }
}
