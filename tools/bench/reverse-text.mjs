// @ts-check
/**
 * Whether the main example learns: runs of `trilithon rl @ examples/reverse-text/rl.toml` as real processes, judged by their metrics.
 *
 *   node tools/bench/reverse-text.mjs                  what continuous integration runs: a shortened training, one with a learning rate of 0, one without asynchrony
 *   node tools/bench/reverse-text.mjs --short 10       the shortened training and that with a learning rate of 0 in 10 seeds
 *   node tools/bench/reverse-text.mjs --full 3         whole trainings in 3 seeds, each from a start of its own seed (outputs/ holds the runs)
 *
 * After ./trilithon build. A shortened training has learned where the mean reward of its last third is more than 5 standard errors above that of its first; the unit
 * of the error is the group, whose answers share a prompt. Exit status 1 where a claim does not hold.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMain, projectRoot } from '../lib/workspace.mjs'

/** Steps of the shortened training, chosen by measurement: the README of the example has the table. */
const shortSteps = 21
const standardErrors = 5
const example = 'examples/reverse-text/rl.toml'

/** @typedef {{ group: string, reward: number }} Answer */
/** @typedef {Record<string, number | string>} Row */

/** @param {readonly number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * How many standard errors the mean of the last third of the steps is above that of the first.
 * @param {readonly (readonly Answer[])[]} steps
 */
export function gainInErrors(steps) {
  const third = Math.floor(steps.length / 3)
  const [first, last] = [steps.slice(0, third), steps.slice(-third)].map((part) => {
    /** @type {Map<string, number[]>} */
    const groups = new Map()
    for (const [step, answers] of part.entries())
      for (const { group, reward } of answers) groups.set(`${step}/${group}`, [...(groups.get(`${step}/${group}`) ?? []), reward])
    const means = [...groups.values()].map(mean)
    const middle = mean(means)
    const variance = means.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (means.length - 1)
    return { middle, variance: variance / means.length }
  })
  if (first === undefined || last === undefined) return Number.NaN
  const error = Math.sqrt(first.variance + last.variance)
  return error > 0 ? (last.middle - first.middle) / error : 0
}

/** @param {string} path @returns {Record<string, unknown>[]} */
const lines = (path) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

/** @param {string} run @returns {Answer[][]} rewards of every batch, in order */
function answersOf(run) {
  const folder = join(run, 'run_default/rollouts')
  return readdirSync(folder)
    .map((name) => Number(name.replace('step_', '')))
    .sort((a, b) => a - b)
    .flatMap((step) => {
      const path = join(folder, `step_${step}`, 'train_rollouts.jsonl')
      return readdirSync(join(folder, `step_${step}`)).includes('train_rollouts.jsonl')
        ? [lines(path).map(({ group_id, reward }) => ({ group: String(group_id), reward: Number(reward) }))]
        : []
    })
}

/**
 * Of every update of the weights: how long the engine took no step, and how long its step before took. Seconds.
 * @param {readonly Record<string, unknown>[]} rows
 */
function pausesOf(rows) {
  const updates = new Map(rows.map((row) => [Number(row['watcher/update_count'] ?? 0), row]))
  return [...updates]
    .filter(([count]) => count > 0)
    .map(([, row]) => ({ pause: Number(row['watcher/pause_seconds']), step: Number(row['watcher/engine_step_seconds']) }))
}

/** @param {readonly number[]} values @param {number} share */
const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))] ?? Number.NaN

/**
 * By the median, because a machine that takes a processor away for a while makes a pause long now and then.
 * @param {string} run @param {ReturnType<typeof pausesOf>} pauses
 */
function claimShortPauses(run, pauses) {
  const ms = (/** @type {number} */ seconds) => (seconds * 1e3).toFixed(1)
  const lengths = pauses.map(({ pause }) => pause)
  const step = quantile(
    pauses.map((one) => one.step),
    0.5,
  )
  const within = pauses.filter(({ pause, step }) => pause <= step).length
  claim(
    quantile(lengths, 0.5) <= step,
    `${run}: at an update the engine takes no step for ${ms(quantile(lengths, 0.5))} ms (median; 90 % ${ms(quantile(lengths, 0.9))}, longest ` +
      `${ms(Math.max(...lengths))}), and a step takes ${ms(step)} ms; in ${within} of ${pauses.length} updates no longer than the step before`,
  )
}

/**
 * Runs the example; `seed` is that of the words and of sampling.
 * @param {string} folder @param {{ seed: number, flags: readonly string[] }} options
 */
function train(folder, { seed, flags }) {
  const overlay = `${folder}.toml`
  writeFileSync(overlay, `[inference]\nseed = ${seed}\n\n[[orchestrator.train.env]]\nid = "reverse-text"\nargs = { seed = ${seed} }\n`)
  const started = process.hrtime.bigint()
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['packages/cli/dist/main.js', 'rl', '@', example, '@', overlay, '--output-dir', folder, '--clean-output-dir', ...flags],
    { cwd: projectRoot, encoding: 'utf8', maxBuffer: 1 << 28 },
  )
  if (status !== 0) throw new Error(`trilithon rl ended with status ${status}\n${stdout.slice(-2000)}\n${stderr.slice(-4000)}`)
  const seconds = Number(process.hrtime.bigint() - started) / 1e9
  return {
    ...{ seconds, steps: answersOf(folder), trainer: lines(join(folder, 'metrics/trainer.jsonl')) },
    pauses: pausesOf(lines(join(folder, 'metrics/orchestrator.jsonl'))),
  }
}

/** Evaluations off: the shortened training is judged by what it trains on. */
const noEvaluations = ['--no-orchestrator.eval']

/** @param {string} folder @param {number} seed @param {readonly string[]} flags @param {number} [steps] */
function short(folder, seed, flags, steps = shortSteps) {
  const run = train(folder, { seed, flags: ['--max-steps', String(steps), ...noEvaluations, ...flags] })
  const exact = run.trainer.map((row) => Number(row['tokens/exact'] ?? 0))
  const mismatch = run.trainer.map((row) => Number(row['mismatch_kl/exact/max'] ?? 0))
  return {
    ...{ seconds: run.seconds, pauses: run.pauses },
    gain: gainInErrors(run.steps),
    rewards: run.steps.map((answers) => mean(answers.map(({ reward }) => reward))),
    steps: run.trainer.length,
    exactTokens: exact.reduce((sum, count) => sum + count, 0),
    trainedTokens: run.trainer.reduce((sum, row) => sum + Number(row['progress/loss_tokens'] ?? 0), 0),
    exactMismatch: Math.max(...mismatch),
  }
}

/** @param {boolean} holds @param {string} sentence */
function claim(holds, sentence) {
  console.log(`${holds ? 'holds' : 'FAILS'}  ${sentence}`)
  if (!holds) process.exitCode = 1
}

/** @param {string} folder @param {number} seeds */
function shortRuns(folder, seeds) {
  for (let seed = 0; seed < seeds; seed++) {
    const learned = short(join(folder, `learns-${seed}`), seed, [])
    const first = learned.rewards[0]?.toFixed(3)
    const last = learned.rewards.at(-1)?.toFixed(3)
    const run = `seed ${seed}, ${learned.seconds.toFixed(0)} s`
    claim(
      learned.gain > standardErrors,
      `${run}: ${learned.steps} steps, reward ${first} to ${last}: ${learned.gain.toFixed(1)} standard errors (more than ${standardErrors})`,
    )
    claim(
      learned.exactTokens > 0 && learned.exactMismatch === 0,
      `${run}: ${learned.exactTokens} of ${learned.trainedTokens} tokens are of the version that trains; their greatest mismatch is ${learned.exactMismatch}`,
    )
    claimShortPauses(run, learned.pauses)
    const still = short(join(folder, `still-${seed}`), seed, ['--trainer.optim.lr', '0', '--trainer.scheduler.min-lr', '0'])
    claim(
      still.gain < standardErrors,
      `${run}: with a learning rate of 0 the same number is ${still.gain.toFixed(1)} (less than ${standardErrors})`,
    )
  }
}

/** Without asynchrony every trained token is of the version that trains. @param {string} folder */
function synchronousRun(folder) {
  const run = short(join(folder, 'synchronous'), 0, ['--orchestrator.max-async-level', '0'], 4)
  claim(
    run.trainedTokens > 0 && run.exactTokens === run.trainedTokens && run.exactMismatch === 0,
    `synchronous: ${run.exactTokens} of ${run.trainedTokens} trained tokens are of the version that trains; their greatest mismatch is ${run.exactMismatch}`,
  )
}

/** @param {number} seeds */
function fullRuns(seeds) {
  for (let seed = 0; seed < seeds; seed++) {
    const made = spawnSync('sh', ['examples/reverse-text/make-start.sh', String(seed)], { cwd: projectRoot, encoding: 'utf8' })
    if (made.status !== 0) throw new Error(made.stderr)
    const weights = join(projectRoot, 'outputs/reverse-text-sft/weights')
    const start = join(weights, readdirSync(weights).sort().at(-1) ?? '')
    const folder = join(projectRoot, `outputs/reverse-text-rl-seed-${seed}`)
    const { seconds } = train(folder, { seed, flags: ['--model.name', start] })
    const rows = lines(join(folder, 'metrics.jsonl'))
    const evaluations = rows.flatMap((row) =>
      typeof row['eval/reverse-text/avg@1'] === 'number' ? [{ step: Number(row.step), reward: row['eval/reverse-text/avg@1'] }] : [],
    )
    const crossing = evaluations.findIndex(({ reward }, index) => reward > 0.9 && Number(evaluations[index - 1]?.reward) > 0.9)
    const wall = rows.find((row) => row.role === 'launcher' && Number(row.step) >= Number(evaluations[crossing]?.step) - 1)?.['time/wall']
    console.log(
      `seed ${seed}: ${evaluations.map(({ step, reward }) => `${step}: ${reward.toFixed(3)}`).join('  ')}; ${seconds.toFixed(0)} s in all`,
    )
    claim(
      Number(evaluations[0]?.reward) < 0.35 && crossing > 0,
      `seed ${seed}: from ${evaluations[0]?.reward.toFixed(3)} to above 0.9 in two evaluations in a row by step ${evaluations[crossing]?.step}, after ${Number(wall).toFixed(0)} s`,
    )
  }
}

if (isMain(import.meta.url)) {
  const { values } = parseArgs({ options: { short: { type: 'string' }, full: { type: 'string' } } })
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-reverse-text-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  if (values.full !== undefined) fullRuns(Number(values.full))
  else {
    shortRuns(folder, Number(values.short ?? 1))
    if (values.short === undefined) synchronousRun(folder)
  }
}
