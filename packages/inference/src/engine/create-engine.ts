import { MessageChannel, Worker } from 'node:worker_threads'
import { type Logger, silentLogger } from '@trilithon/core'
import type { Engine } from './engine.ts'
import { EngineHost, plainError } from './engine-host.ts'
import type { FromCore, ToCore } from './engine-messages.ts'
import { type EngineOptions, type HostOptions, hostOptions } from './engine-options.ts'
import { EngineProxy, type ProxyPort } from './engine-proxy.ts'
import type { EngineWorkerData } from './engine-worker.ts'

/**
 * Starts an engine: reads the model in a thread of its own, and resolves when it can serve. Throws what reading the model throws (`MODEL_NOT_FOUND`,
 * `CHECKPOINT_INVALID`, …) and `CONFIG_VALUE_INVALID` for sizes that do not fit together. `signal` gives up the reading: then `ENGINE_FAILED`.
 */
export async function createEngine(options: EngineOptions, log: Logger = silentLogger, signal?: AbortSignal): Promise<Engine> {
  const host = hostOptions(options)
  const port = options.thread === 'here' ? startHere(host) : startThread(host)
  const stop = () => {
    port.stop()
    void port.close()
  }
  signal?.addEventListener('abort', stop, { once: true })
  try {
    return await EngineProxy.start(port, { store: options.store ?? null, log })
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

function startThread(options: HostOptions): ProxyPort {
  const abortFlag = new Int32Array(new SharedArrayBuffer(4))
  const data: EngineWorkerData = { options, abortFlag }
  const worker = new Worker(new URL('./engine-worker.js', import.meta.url), { workerData: data, stdout: false, stderr: false })
  return {
    post: (message) => worker.postMessage(message),
    listen(onMessage, onEnd) {
      let failure: unknown
      worker.on('message', onMessage)
      worker.on('error', (error) => {
        failure = error
      })
      worker.on('exit', () => onEnd(failure))
    },
    stop: () => Atomics.store(abortFlag, 0, 1),
    async close() {
      await worker.terminate()
    },
  }
}

/** The same through a pair of ports of this thread. */
function startHere(options: HostOptions): ProxyPort {
  const { port1, port2 } = new MessageChannel()
  return {
    post: (message) => port1.postMessage(message),
    listen(onMessage, onEnd) {
      port1.on('message', onMessage)
      port1.on('close', () => onEnd(undefined))
      try {
        const host = new EngineHost(options, { postMessage: (message, transfer) => port2.postMessage(message, [...transfer]) }, () =>
          port2.close(),
        )
        port2.on('message', (message: ToCore) => host.take(message))
      } catch (error) {
        const failed: FromCore = { kind: 'failed', error: plainError(error) }
        port2.postMessage(failed)
        port2.close()
      }
    },
    stop: () => undefined,
    async close() {
      port1.close()
    },
  }
}
