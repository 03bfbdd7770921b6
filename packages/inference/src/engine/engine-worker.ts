/** The thread of the engine: model code runs here and nowhere else. Its only effect is that of the engine it is started for. */
import { parentPort, workerData } from 'node:worker_threads'
import { invariant } from '@trilithon/core'
import { configureNative } from '@trilithon/native'
import { EngineHost, plainError } from './engine-host.ts'
import type { ToCore } from './engine-messages.ts'
import type { HostOptions } from './engine-options.ts'

/** What the main thread gives to this one. */
export interface EngineWorkerData {
  readonly options: HostOptions
  /** Its first element is not 0 when the engine shall end at once. */
  readonly abortFlag: Int32Array
}

const port = parentPort
invariant(port !== null, 'the thread of the engine is started by createEngine')
const { options, abortFlag } = workerData as EngineWorkerData
try {
  configureNative({ profile: options.profile, abortFlag, ...(options.threads === null ? {} : { threads: options.threads }) })
  const host = new EngineHost(options, { postMessage: (message, transfer) => port.postMessage(message, [...transfer]) }, () => port.close())
  port.on('message', (message: ToCore) => host.take(message))
} catch (error) {
  port.postMessage({ kind: 'failed', error: plainError(error) })
  port.close()
}
