// @ts-check
/**
 * Formats the C++ and CUDA of `native/` by `native/.clang-format`, with the clang-format that the lock file pins.
 *
 *   node tools/format-native.mjs            reports files that are not formatted
 *   node tools/format-native.mjs --write    formats them
 *
 * Ends with status 3 and a reason where that clang-format does not run.
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { report } from './lib/problems.mjs'
import { filesBelow, projectRoot } from './lib/workspace.mjs'

/** Path of the program, or why there is none. @returns {{ path: string } | { reason: string }} */
function findClangFormat() {
  const here = `${platform()} ${arch()}`
  let path
  try {
    path = createRequire(import.meta.url)('clang-format').getNativeBinary()
  } catch (error) {
    return { reason: `the pinned clang-format has no program for ${here} (${/** @type {Error} */ (error).message.split('\n')[0]})` }
  }
  const { status, error } = spawnSync(path, ['--version'])
  return status === 0 ? { path } : { reason: `the pinned clang-format does not run on ${here} (${error?.message ?? `status ${status}`})` }
}

const found = findClangFormat()
if ('reason' in found) {
  console.log(`C++ formatting is not checked: ${found.reason}.`)
  process.exit(3)
}
const files = filesBelow(projectRoot, 'native', (path) => /\.(h|cpp|inl|cu)$/.test(path))
if (process.argv.includes('--write')) {
  process.exitCode = spawnSync(found.path, ['-i', '--style=file', ...files], { cwd: projectRoot, stdio: 'inherit' }).status ?? 1
} else {
  const { status, stderr } = spawnSync(found.path, ['--dry-run', '--Werror', '--style=file', ...files], {
    cwd: projectRoot,
    encoding: 'utf8',
  })
  /** First line of each file that is not formatted. @type {Map<string, number>} */
  const first = new Map()
  for (const [, file = '', line] of stderr.matchAll(/^(native\/[^:]+):(\d+):\d+: error: /gm))
    if (!first.has(file)) first.set(file, Number(line))
  if (status !== 0 && first.size === 0) {
    console.error(`clang-format failed: ${stderr.trim()}`)
    process.exit(1)
  }
  const problems = [...first].map(([file, line]) => ({
    file,
    line,
    rule: 'format-native',
    message: 'It is not formatted from here on.',
    hint: 'Run: node tools/format-native.mjs --write',
  }))
  report(problems, `${files.length} files of native are formatted`)
}
