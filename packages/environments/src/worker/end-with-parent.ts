import { Worker } from 'node:worker_threads'

const intervalMs = 250

/**
 * Ends this process when its parent has: at once when the channel between them closes, and where a busy loop keeps this thread from hearing of it by a
 * second thread that looks for the parent. `onEnd` runs in the first case.
 */
export function endWithParent(parentPid: number, onEnd: () => void): void {
  process.once('disconnect', () => {
    onEnd()
    process.exit(0)
  })
  const watch = `setInterval(() => {
    if (process.ppid !== ${parentPid}) process.kill(process.pid, 'SIGKILL')
  }, ${intervalMs})`
  new Worker(watch, { eval: true, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 } }).unref()
}
