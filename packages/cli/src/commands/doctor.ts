import { spawnSync } from 'node:child_process'
import { TrilithonError } from '@trilithon/core'
import { Command } from 'commander'
import { type CommandLineHost, usesColors } from '../host.ts'

/** One thing that is here or not; `reason` says why not, `detail` what was found. */
interface Finding {
  readonly name: string
  readonly available: boolean
  readonly detail: string
}

interface Diagnosis {
  readonly machine: unknown
  readonly findings: readonly Finding[]
}

/** What this machine has for Trilithon, and for each thing that it has not the reason. */
export function doctorCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  return new Command('doctor')
    .summary('what this machine has, and why not for the rest')
    .description('Shows processor, instruction sets, cores, compilers and devices, and for each thing that is unavailable the reason.')
    .option('--json', 'machine-readable output')
    .option('--verbose', 'show stacks and causes of errors')
    .action(async ({ json }: { json?: boolean }) => {
      const diagnosis = await diagnose(host.environment)
      if (json === true) host.stdout.write(`${JSON.stringify(diagnosis)}\n`)
      else host.stdout.write(render(diagnosis, usesColors(host.stdout, host.environment)))
      finish(diagnosis.machine === null ? 3 : 0)
    })
}

async function diagnose(environment: NodeJS.ProcessEnv): Promise<Diagnosis> {
  const findings: Finding[] = [
    { name: 'Node.js', available: true, detail: `${process.versions.node} on ${process.platform} ${process.arch}` },
  ]
  findings.push(
    tool('C++ compiler', [environment.CXX, 'c++', 'g++', 'clang++'], 'Debian: apt-get install g++; macOS: xcode-select --install'),
  )
  findings.push(tool('CMake', ['cmake'], 'Debian: apt-get install cmake; macOS: brew install cmake'))
  let machine: unknown = null
  try {
    const { describeMachine } = await import('@trilithon/native')
    const info = describeMachine()
    machine = info
    const { cpu, cores, cuda } = info
    findings.push({ name: 'native addon', available: true, detail: `${info.version}, built with ${info.builtWith}` })
    findings.push({ name: 'processor', available: true, detail: `${cpu.model} (${cpu.vendor})` })
    findings.push({
      name: 'cores',
      available: cores.threads !== null,
      detail: `${cores.physical} physical, ${cores.logical} logical${cores.quota === null ? '' : `, quota ${cores.quota}`}; ${cores.threadsReason}`,
    })
    const sets = Object.entries(cpu.instructionSets)
    findings.push({ name: 'instruction sets', available: true, detail: names(sets.filter(([, here]) => here)) })
    const absent = sets.filter(([, here]) => !here)
    if (absent.length > 0)
      findings.push({
        name: 'not in this processor',
        available: false,
        detail: `${names(absent)}${cpu.amxReason === null ? '' : ` (${cpu.amxReason})`}`,
      })
    for (const { name, unsupportedReason } of cpu.tables)
      findings.push({ name: `kernels ${name}`, available: unsupportedReason === null, detail: unsupportedReason ?? 'can run here' })
    findings.push({ name: 'kernels in use', available: cpu.table !== null, detail: `${cpu.table ?? 'none'}: ${cpu.tableReason}` })
    const { compiler } = cuda
    findings.push({
      name: 'CUDA compiler',
      available: compiler.path !== null,
      detail: compiler.unavailableReason ?? `${compiler.path} ${compiler.version ?? ''}`.trim(),
    })
    findings.push({
      name: 'CUDA device',
      available: cuda.devices.length > 0,
      detail:
        cuda.unavailableReason ??
        cuda.devices
          .map(({ name, computeCapability, memoryBytes }) => `${name} (${computeCapability}, ${Math.round(memoryBytes / 2 ** 30)} GiB)`)
          .join(', '),
    })
  } catch (error) {
    if (!TrilithonError.is(error)) throw error
    findings.push({ name: 'native addon', available: false, detail: `${error.message} ${error.hint ?? ''}`.trim() })
  }
  const { rootsOf } = await import('@trilithon/runtime')
  const { roles } = await import('@trilithon/core')
  for (const role of roles) {
    const roots = rootsOf(role)
    findings.push({
      name: `role ${role}`,
      available: roots.length > 0,
      detail: roots.length > 0 ? `built for ${roots.join(', ')}` : 'not built yet',
    })
  }
  return { machine, findings }
}

function names(sets: readonly (readonly [string, boolean])[]): string {
  return sets.map(([name]) => name).join(' ') || 'none'
}

function tool(name: string, commands: readonly (string | undefined)[], advice: string): Finding {
  for (const command of commands) {
    if (command === undefined || command === '') continue
    const { status, stdout } = spawnSync(command, ['--version'], { encoding: 'utf8' })
    if (status === 0) return { name, available: true, detail: `${command}: ${stdout.split('\n')[0]}` }
  }
  return { name, available: false, detail: `not found (${advice})` }
}

function render({ findings }: Diagnosis, colors: boolean): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const mark = (available: boolean) => (available ? (colors ? '\u001b[32m+\u001b[39m' : '+') : colors ? '\u001b[31m-\u001b[39m' : '-')
  return `${findings.map(({ name, available, detail }) => `${mark(available)} ${name.padEnd(width)}  ${detail}`).join('\n')}\n`
}
