// @ts-check
/**
 * Builds the kernel harness with AddressSanitizer and UndefinedBehaviorSanitizer into build/sanitize and runs its tests and
 * gradient checks. Arguments go to the harness: `node scripts/sanitize.mjs --op gemm`.
 */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(dirname(fileURLToPath(import.meta.url)))
const build = join(folder, 'build', 'sanitize')

/** @param {string} command @param {string[]} args */
function run(command, args) {
  const child = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 })
  if (child.status === 0) return child.stdout
  process.stderr.write(`${child.stdout ?? ''}${child.stderr ?? ''}${child.error?.message ?? ''}\n`)
  process.stderr.write(`native: ${command} ${args[0]} failed\n`)
  process.exit(1)
}

run('cmake', ['-S', folder, '-B', build, '-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS_RELEASE=-O1', '-DTRILITHON_SANITIZE=ON'])
process.stdout.write('native: building the harness with sanitizers\n')
run('cmake', ['--build', build, '--target', 'trilithon-harness', '--parallel', String(availableParallelism())])
const harness = join(build, 'Release', 'trilithon-harness')
for (const mode of ['test', 'grad']) process.stdout.write(run(harness, [mode, ...process.argv.slice(2)]))
