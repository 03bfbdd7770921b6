// @ts-check
/** Another process: ends engines in several ways, and prints what whoever waited was told. */
import { createEngine } from '@trilithon/inference'

const modelFolder = process.argv[2] ?? ''
const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, seed: 1n, maxTokens: 400, minTokens: 0, stopIds: [], stopsAtEnd: false }
const request = {
  id: 'one',
  promptIds: Uint32Array.of(1, 2, 3),
  sampling,
  salt: '',
  tenant: '',
  priority: 0,
  logprobs: 0,
  promptLogprobs: null,
  routedExpertsFrom: null,
  reportsIndexChoices: false,
  imported: null,
}
/** @type {string[]} */
const told = []
const codeOf = (/** @type {any} */ error) => error.code

const faulty = await createEngine({ modelFolder, threads: 1 })
const ended = faulty.ended.catch(codeOf)
const answer = new Promise((resolve) => faulty.submit(request, (event) => event.kind === 'end' && resolve(event.reason)))
// What no caller may send: the salt is no text.
faulty.submit({ ...request, id: 'two', promptIds: new Uint32Array(40), salt: /** @type {any} */ (undefined) }, () => undefined)
told.push(await ended, /** @type {string} */ (await answer), await faulty.resume().catch(codeOf))
await faulty.dispose()

told.push(await createEngine({ modelFolder: '/nowhere' }).catch(codeOf))

const busy = await createEngine({ modelFolder, threads: 1 })
for (let index = 0; index < 64; index++) busy.submit({ ...request, id: String(index) }, () => undefined)
await new Promise((resolve) => setTimeout(resolve, 50))
const start = performance.now()
await busy.dispose()
await busy.ended
told.push(String(Math.round(performance.now() - start)))
process.stdout.write(told.join(' '))
