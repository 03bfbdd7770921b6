import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const folder = join(import.meta.dirname, '..')
const harness = join(folder, 'build', 'Release', 'trilithon-harness')

/** All cases on every instruction set and thread count; about a minute on two quiet cores. */
const harnessMs = 300_000

function run(command: string, args: readonly string[]): string {
  const child = spawnSync(command, args, { encoding: 'utf8', cwd: folder, maxBuffer: 1 << 26 })
  expect(child.status, `${child.stdout}${child.stderr}`).toBe(0)
  return child.stdout
}

test(
  'every kernel agrees with its reference, and every instruction set and thread count to the bit',
  () => {
    run(harness, ['test'])
  },
  harnessMs,
)

test(
  'every backward entry is the gradient of its forward entry',
  () => {
    run(harness, ['grad'])
  },
  harnessMs,
)

test('the typed face is what the addon says', () => {
  run(process.execPath, ['scripts/generate-face.mjs', '--check'])
})

// A function compiled for AVX-512 that the linker may merge with others' copies would run on processors without it.
test('objects compiled for one instruction set define nothing but their table', (context) => {
  const objects = join(folder, 'build', 'CMakeFiles', 'trilithon_ops.dir', 'generated')
  const names = existsSync(objects) ? readdirSync(objects).filter((name) => /\.(scalar|avx2|avx512)\.cpp\.o$/.test(name)) : []
  if (names.length === 0) return context.skip('the build folder holds no objects (restored from a cache)')
  if (spawnSync('nm', ['--version']).status !== 0) return context.skip('nm is not installed')
  for (const name of names) {
    const defined = run('nm', ['-C', '--defined-only', '--extern-only', join(objects, name)])
    const symbols = defined.split('\n').filter((line) => line !== '')
    expect(symbols, name).toEqual([expect.stringMatching(/trilithon::\w+_kernels_isa_\w+$/)])
  }
})
