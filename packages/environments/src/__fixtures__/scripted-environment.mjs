import { defineEnvironment } from '@trilithon/environments'
import { z } from 'zod'

/** What each task does is written in `args.tasks`, one word each; tasks beyond them are `echo`. */
export default defineEnvironment({
  name: 'scripted',
  args: z.strictObject({ tasks: z.array(z.string()).default([]) }),
  dataset: ({ tasks }) => ({ size: { train: null, eval: 8 }, task: ({ index }) => ({ index, kind: tasks[index] ?? 'echo' }) }),
  async episode({ task, model, signal }) {
    const { kind } = task
    if (kind === 'wait-first') await new Promise((resolve) => setTimeout(resolve, 400))
    const texts = []
    for (let turn = 0; turn < (kind === 'twice' ? 2 : 1); turn++) texts.push((await model.turn(`t${task.index}=`)).text)
    if (kind === 'busy') for (;;);
    if (kind === 'busy-later') {
      await new Promise((resolve) => setTimeout(resolve, 50))
      for (;;) await null
    }
    if (kind === 'exit') process.exit(3)
    if (kind === 'die') process.kill(process.pid, 'SIGKILL')
    if (kind === 'crash') setTimeout(() => { throw new Error('out of a timer') }, 0)
    if (kind === 'crash' || kind === 'hang') await new Promise(() => {})
    if (kind === 'throw') throw new RangeError('the sandbox is broken')
    if (kind === 'stray') void Promise.reject(new Error('nobody listens'))
    if (kind === 'slow') await new Promise((resolve, reject) => {
      setTimeout(resolve, 1500)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    return { texts, kept: { deep: [task.index] }, pid: process.pid }
  },
  score({ outcome }, { task }) {
    if (task.kind === 'busy-score') for (;;);
    if (task.kind === 'nan') return Number.NaN
    if (task.kind === 'text') return '1'
    if (task.kind === 'bad-metric') return { reward: 1, metrics: { x: Number.POSITIVE_INFINITY } }
    if (task.kind === 'throw-score') throw new TypeError('the judge is broken')
    return { reward: 0.5, metrics: { answers: outcome.texts.length } }
  },
})
