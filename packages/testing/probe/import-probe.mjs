// @ts-check
/**
 * Imports one module in this fresh process and writes to file descriptor 3, as JSON, what the import did beside defining things.
 *
 *     node import-probe.mjs <URL of the module> <URL of vite, for a module in TypeScript>   3>report.json
 */
import { createHook } from 'node:async_hooks'
import { writeSync } from 'node:fs'
import { register } from 'node:module'

const [moduleUrl = '', vite = ''] = process.argv.slice(2)
if (vite !== '') register('./typescript-hooks.mjs', import.meta.url, { data: { vite } })

/** What a module starts when it works: timers, sockets, children, threads, watchers. The loader itself uses none of them. */
const work = new Set(
  'Timeout Immediate TCPWRAP TCPSERVERWRAP UDPWRAP PIPESERVERWRAP PROCESSWRAP WORKER SIGNALWRAP FSEVENTWRAP STATWATCHER GETADDRINFOREQWRAP HTTPCLIENTREQUEST'.split(
    ' ',
  ),
)
/** @type {Set<string>} */
const effects = new Set()
let ours = false
createHook({
  init(_id, type) {
    if (!ours && work.has(type)) effects.add(`starts work (${type})`)
  },
}).enable()

/** @typedef {Map<string | symbol, unknown>} Facts */

/** @returns {{ globals: Facts, environment: Facts, listeners: Facts }} */
function facts() {
  // An accessor is never called: node fills some globals at their first use.
  const globals = Reflect.ownKeys(globalThis).map(
    (key) => /** @type {const} */ ([key, Reflect.getOwnPropertyDescriptor(globalThis, key)?.value]),
  )
  return {
    globals: new Map(globals),
    environment: new Map(Object.entries(process.env)),
    listeners: new Map(process.eventNames().map((name) => [name, process.listenerCount(name)])),
  }
}

/** @param {Facts} before @param {Facts} after */
function changes(before, after) {
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => before.has(key) !== after.has(key) || (before.get(key) !== undefined && !Object.is(before.get(key), after.get(key))),
  )
}

const before = facts()
/** @type {unknown} */
let defaultExport
try {
  defaultExport = (await import(moduleUrl)).default
} catch (error) {
  effects.add(`throws: ${error instanceof Error ? error.message : String(error)}`)
}
// What the module left for the next turn shows then.
await new Promise((resolve) => {
  ours = true
  setImmediate(resolve)
  ours = false
})
const after = facts()
// zod keeps one registry for all its copies.
for (const key of changes(before.globals, after.globals))
  if (!String(key).startsWith('__zod_')) effects.add(`changes globalThis.${String(key)}`)
for (const key of changes(before.environment, after.environment)) effects.add(`changes the environment variable ${String(key)}`)
for (const key of changes(before.listeners, after.listeners)) effects.add(`listens to the process event "${String(key)}"`)

const name = typeof defaultExport === 'object' && defaultExport !== null && 'name' in defaultExport ? defaultExport.name : undefined
writeSync(3, JSON.stringify({ effects: [...effects], defaultName: name }))
