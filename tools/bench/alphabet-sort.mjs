// @ts-check
/**
 * Whether the example of several turns learns: whole runs of `trilithon rl @ examples/alphabet-sort/rl.toml` as real processes, judged by their evaluations.
 *
 *   node tools/bench/alphabet-sort.mjs 3               3 seeds of words and sampling, from the start in the repository
 *   node tools/bench/alphabet-sort.mjs 3 --starts      each from a start of its own seed, made by make-start.sh
 *
 * After ./trilithon build; outputs/ holds the runs. Exit status 1 where a run does not go from below 0.4 to above 0.8.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMain, projectRoot } from '../lib/workspace.mjs'

const example = 'examples/alphabet-sort'
const metric = 'eval/alphabet-sort/avg@1'

/** The tables of the environment as they are in the example, with a seed. @param {number} seed */
function overlayOf(seed) {
  const args = /\[\[orchestrator\.train\.env\]\]\nid = "alphabet-sort"\nargs = \{ (.*) \}/.exec(
    readFileSync(join(projectRoot, example, 'rl.toml'), 'utf8'),
  )?.[1]
  if (args === undefined) throw new Error(`${example}/rl.toml has no arguments of its environment`)
  return `[inference]\nseed = ${seed}\n\n[[orchestrator.train.env]]\nid = "alphabet-sort"\nargs = { ${args}, seed = ${seed} }\n`
}

/** Seconds of processor time of a shell's children, from the last line of `times`: `0m1.23s 0m0.45s`. @param {string} text */
function processorSeconds(text) {
  const last = text.trim().split('\n').at(-1) ?? ''
  return [...last.matchAll(/(\d+)m([\d.]+)s/g)].reduce((sum, [, minutes, seconds]) => sum + 60 * Number(minutes) + Number(seconds), 0)
}

/** @param {string} folder @param {number} seed @param {readonly string[]} flags */
function train(folder, seed, flags) {
  const scratch = mkdtempSync(join(tmpdir(), 'trilithon-alphabet-sort-'))
  try {
    const overlay = join(scratch, 'seed.toml')
    writeFileSync(overlay, overlayOf(seed))
    const started = process.hrtime.bigint()
    const words = ['rl', '@', `${example}/rl.toml`, '@', overlay, '--output-dir', folder, '--clean-output-dir', ...flags]
    const { status, stdout, stderr } = spawnSync(
      'sh',
      ['-c', '"$@"; status=$?; times; exit $status', 'sh', process.execPath, 'packages/cli/dist/main.js', ...words],
      { cwd: projectRoot, encoding: 'utf8', maxBuffer: 1 << 28 },
    )
    if (status !== 0) throw new Error(`trilithon rl ended with status ${status}\n${stdout.slice(-2000)}\n${stderr.slice(-4000)}`)
    return { seconds: Number(process.hrtime.bigint() - started) / 1e9, processor: processorSeconds(stdout) }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** @param {string} folder @returns {{ step: number, reward: number }[]} */
function evaluationsOf(folder) {
  const lines = readFileSync(join(projectRoot, folder, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
  return lines
    .map((line) => JSON.parse(line))
    .flatMap((row) => (typeof row[metric] === 'number' ? [{ step: Number(row.step), reward: row[metric] }] : []))
}

/** @param {number} seeds @param {boolean} ownStarts */
function runs(seeds, ownStarts) {
  for (let seed = 0; seed < seeds; seed++) {
    /** @type {string[]} */
    const flags = []
    if (ownStarts) {
      const made = spawnSync('sh', [`${example}/make-start.sh`, String(seed)], { cwd: projectRoot, encoding: 'utf8', maxBuffer: 1 << 28 })
      if (made.status !== 0) throw new Error(made.stderr)
      flags.push('--model.name', 'outputs/alphabet-sort-sft/weights/step_1200')
    }
    const folder = `outputs/alphabet-sort-rl-seed-${seed}`
    const { seconds, processor } = train(folder, seed, flags)
    const evaluations = evaluationsOf(folder)
    const [first, last] = [evaluations[0]?.reward ?? 1, evaluations.at(-1)?.reward ?? 0]
    const crossing = evaluations.find(({ reward }) => reward > 0.8)?.step
    const holds = first < 0.4 && last > 0.8
    if (!holds) process.exitCode = 1
    const curve = evaluations.map(({ step, reward }) => `${step}: ${reward.toFixed(3)}`).join('  ')
    const cost = `${seconds.toFixed(0)} s, ${processor.toFixed(0)} processor seconds, load ${loadavg()[0]?.toFixed(0)} at the end`
    console.log(`${holds ? 'holds' : 'FAILS'}  seed ${seed}: ${curve}; above 0.8 by step ${crossing}; ${cost}`)
  }
}

if (isMain(import.meta.url)) {
  const { values, positionals } = parseArgs({ options: { starts: { type: 'boolean', default: false } }, allowPositionals: true })
  runs(Number(positionals[0] ?? 1), values.starts)
}
