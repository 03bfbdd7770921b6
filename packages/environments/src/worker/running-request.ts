import { AsyncLocalStorage } from 'node:async_hooks'

const running = new AsyncLocalStorage<string>()
/** Where the thread beside this one finds it: code of its own module would be another copy. */
export const runningRequestKey = 'trilithon/running-request'

/** Runs `work`, and everything that it leads to, under the name of a request. */
export function asRequest<Value>(id: string, work: () => Value): Value {
  return running.run(id, work)
}

/** The request whose code runs at this moment; undefined for our own. */
export function runningRequest(): string | undefined {
  return running.getStore()
}

/** Lets the thread beside this one ask for it, also while a busy loop holds this one. */
export function showRunningRequest(): void {
  Object.defineProperty(globalThis, Symbol.for(runningRequestKey), { value: runningRequest, configurable: true })
}
