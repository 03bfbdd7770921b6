/** The training thread of `sft`: model code runs here and nowhere else. Its only effect is that of the run it is started for. */
import { parentPort, workerData } from 'node:worker_threads'
import { invariant, TrilithonError } from '@trilithon/core'
import { configureNative } from '@trilithon/native'
import type { SftEvent } from './sft-event.ts'
import { runSftHere, type SftSetup } from './sft-run.ts'

/** What the main thread gives to this one. */
export interface SftWorkerData {
  readonly setup: SftSetup
  /** Its first element is not 0 when the run shall end. */
  readonly abortFlag: Int32Array
}

/** A message to the main thread. */
export type SftMessage = SftEvent | { readonly kind: 'failed'; readonly error: unknown; readonly stack: string | undefined }

const port = parentPort
invariant(port !== null, 'the training thread is started by runSft')
const { setup, abortFlag } = workerData as SftWorkerData
const send = (message: SftMessage) => port.postMessage(message)
try {
  configureNative({ profile: setup.config.numerics_profile, abortFlag })
  await runSftHere({ setup, listener: send, isStopped: () => Atomics.load(abortFlag, 0) !== 0 })
} catch (error) {
  const known = TrilithonError.is(error)
    ? error
    : new TrilithonError('INVARIANT_BROKEN', error instanceof Error ? error.message : String(error), {
        hint: 'This is a fault of Trilithon; report it with the output of --verbose.',
      })
  send({ kind: 'failed', error: JSON.parse(JSON.stringify(known)), stack: error instanceof Error ? error.stack : undefined })
}
