// @ts-check
/**
 * What a call of the command line costs: start of the process, a dry run on top of it, and `./trilithon` on top of calling node.
 *
 *   node tools/bench/composition.mjs [file.toml ...]     (after ./trilithon build; files compose under `rl`)
 *
 * Interleaved runs of whole processes, median and range in milliseconds.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const main = join(root, 'packages/cli/dist/main.js')
const files = process.argv.slice(2)
const output = mkdtempSync(join(tmpdir(), 'trilithon-bench-'))
const dryRun = [
  'rl',
  ...(files.length > 0 ? files : ['examples/reverse-text/rl.toml']).flatMap((file) => ['@', file]),
  '--dry-run',
  '--output-dir',
  output,
]
const rounds = 15

/** @type {{ name: string, command: string, args: string[], ms: number[] }[]} */
const cases = [
  { name: 'node -e 0', command: 'node', args: ['-e', '0'], ms: [] },
  { name: 'trilithon --help', command: 'node', args: [main, '--help'], ms: [] },
  { name: 'trilithon rl --dry-run', command: 'node', args: [main, ...dryRun], ms: [] },
  { name: './trilithon --help', command: './trilithon', args: ['--help'], ms: [] },
]
for (let round = 0; round < rounds; round++) {
  for (const one of cases) {
    const start = performance.now()
    const { status, stderr } = spawnSync(one.command, one.args, { cwd: root, encoding: 'utf8' })
    one.ms.push(performance.now() - start)
    if (status !== 0) throw new Error(`${one.name} ended with ${status}: ${stderr}`)
  }
}
rmSync(output, { recursive: true })

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.versions.node}, ${rounds} rounds, ${dryRun.slice(1, -3).join(' ')}`,
)
for (const { name, ms } of cases)
  console.log(`${name.padEnd(26)} ${median(ms).toFixed(0).padStart(5)} ms  (${Math.min(...ms).toFixed(0)}-${Math.max(...ms).toFixed(0)})`)
const difference = (/** @type {number} */ a, /** @type {number} */ b) =>
  median((cases[a]?.ms ?? []).map((value, index) => value - (cases[b]?.ms[index] ?? 0)))
console.log(`dry run after process start ${difference(2, 1).toFixed(0)} ms; ./trilithon over node ${difference(3, 1).toFixed(0)} ms`)
