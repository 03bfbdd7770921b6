import { rmSync, writeFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { runningRequest, runningRequestKey, showRunningRequest } from './running-request.ts'

export interface WatchThreadOptions {
  readonly parentPid: number
  /** Where the request that holds or ends this process is written down. */
  readonly culpritFile: string
}

const beatMs = 100
const intervalMs = 250
/** Looks without a beat after which this thread counts as held. */
const mostMissed = 2

/**
 * A second thread that goes on where a busy loop holds this one. It ends the process when its parent has ended, and asks the debugger of this thread, which
 * answers within loops too, whose code it is that runs. A call into the system answers when it is over. `process.exit` and exceptions that nobody caught are
 * written down by this thread itself.
 */
export function startWatchThread({ parentPid, culpritFile }: WatchThreadOptions): void {
  showRunningRequest()
  const beats = new Int32Array(new SharedArrayBuffer(4))
  setInterval(() => Atomics.add(beats, 0, 1), beatMs).unref()
  const watch = `
    const { workerData: beats } = require('node:worker_threads')
    const { Session } = require('node:inspector')
    const { rmSync, writeFileSync } = require('node:fs')
    const file = ${JSON.stringify(culpritFile)}
    let last = 0
    let missed = 0
    let session
    const asked = (error, answer) => {
      const id = error === null ? answer.result.value : undefined
      try {
        // What ran on meanwhile held nobody.
        if (typeof id === 'string' && Atomics.load(beats, 0) === last) writeFileSync(file, id)
      } catch {
        // The folder is the parent's, and has gone with it.
      }
    }
    setInterval(() => {
      if (process.ppid !== ${parentPid}) process.kill(process.pid, 'SIGKILL')
      const beat = Atomics.load(beats, 0)
      if (beat !== last) {
        last = beat
        missed = 0
        if (session === undefined) return
        session.disconnect()
        session = undefined
        rmSync(file, { force: true })
      } else if (++missed === ${mostMissed}) {
        session = new Session()
        session.connectToMainThread()
        session.post('Runtime.evaluate', { expression: 'globalThis[Symbol.for(${JSON.stringify(runningRequestKey)})]()' }, asked)
      }
    }, ${intervalMs})`
  new Worker(watch, {
    eval: true,
    execArgv: [],
    workerData: beats,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  }).unref()
  process.on('exit', () => {
    const id = runningRequest()
    try {
      rmSync(culpritFile, { force: true })
      if (id !== undefined) writeFileSync(culpritFile, id)
    } catch {
      // The folder is the parent's, and has gone with it.
    }
  })
}
