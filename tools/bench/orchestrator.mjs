// @ts-check
/**
 * What the orchestrator costs: processor time per rollout and memory over many steps, with engines and a trainer that take no time.
 *
 *   node --expose-gc tools/bench/orchestrator.mjs [--steps 5000] [--batch 32] [--group 4]     (after ./trilithon build)
 *
 * Processor time is that of the whole process, of the played engines and the virtual clock too. Two lengths of rollouts give the part per token. Memory is
 * the heap behind a collection, and the resident memory; the slope is a line through all points behind the first tenth.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'

/** @type {typeof import('@trilithon/orchestrator/fakes')} */
const { runSteps } = await import(String(new URL('../../packages/orchestrator/dist/fakes/index.js', import.meta.url)))
/** @type {typeof import('@trilithon/builtin')} */
const { stickyRouter } = await import(String(new URL('../../packages/builtin/dist/index.js', import.meta.url)))

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '5000' },
    batch: { type: 'string', default: '32' },
    group: { type: 'string', default: '4' },
  },
})
const [steps, batchSize, groupSize] = [Number(values.steps), Number(values.batch), Number(values.group)]

/** @param {readonly { x: number, y: number }[]} points */
function slope(points) {
  const mean = (/** @type {readonly number[]} */ list) => list.reduce((sum, one) => sum + one, 0) / list.length
  const [mx, my] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))]
  const top = points.reduce((sum, { x, y }) => sum + (x - mx) * (y - my), 0)
  return top / points.reduce((sum, { x }) => sum + (x - mx) ** 2, 0)
}

/** @param {number} tokens @param {number} count */
async function measure(tokens, count) {
  /** @type {{ x: number, y: number }[]} */
  const heap = []
  /** @type {{ x: number, y: number }[]} */
  const resident = []
  const every = Math.max(1, Math.floor(count / 50))
  const before = process.cpuUsage()
  const beganMs = performance.now()
  await runSteps({
    ...{ steps: count, batchSize, groupSize, tokens },
    router: /** @type {import('@trilithon/core').Router} */ (await stickyRouter.create(/** @type {never} */ ({ config: {} }))),
    onStep(step) {
      if (step % every !== 0) return
      globalThis.gc?.()
      const { heapUsed, rss, external } = process.memoryUsage()
      heap.push({ x: step, y: (heapUsed + external) / 2 ** 20 })
      resident.push({ x: step, y: rss / 2 ** 20 })
    },
  })
  const { user, system } = process.cpuUsage(before)
  const late = (/** @type {readonly { x: number, y: number }[]} */ points) => points.slice(Math.ceil(points.length / 10))
  return {
    tokens,
    rollouts: count * batchSize,
    microseconds: (user + system) / (count * batchSize),
    seconds: (performance.now() - beganMs) / 1000,
    heapSlope: slope(late(heap)),
    residentSlope: slope(late(resident)),
    heapEnd: heap.at(-1)?.y ?? 0,
    residentEnd: resident.at(-1)?.y ?? 0,
  }
}

await measure(64, 50)
const short = await measure(64, steps)
const long = await measure(1024, Math.max(50, Math.floor(steps / 5)))
const perToken = (long.microseconds - short.microseconds) / (long.tokens - short.tokens)
for (const one of [short, long])
  process.stdout.write(
    `${one.rollouts} rollouts of ${one.tokens} tokens in ${one.seconds.toFixed(1)} s: ${one.microseconds.toFixed(0)} us of processor time per rollout ` +
      `(allowed ${1000 + one.tokens}); heap ${one.heapEnd.toFixed(1)} MB, ${(1000 * one.heapSlope).toFixed(2)} KB per step; resident ${one.residentEnd.toFixed(0)} MB, ${(1000 * one.residentSlope).toFixed(2)} KB per step\n`,
  )
process.stdout.write(`${perToken.toFixed(3)} us per token; Node ${process.versions.node}, ${availableParallelism()} cores\n`)
