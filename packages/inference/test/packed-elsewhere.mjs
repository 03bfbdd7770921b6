// @ts-check
/** Another process: what the trainer's packed forward says of sequences. Reads them from standard input, prints the bits. */
import { readFileSync } from 'node:fs'
import { createPackedContext, loadModel } from '@trilithon/models'
import { scope, toArray } from '@trilithon/tensor'

const { folders, sequences } = JSON.parse(readFileSync(0, 'utf8'))
const models = folders.map((/** @type {string} */ folder) => loadModel(folder).model)
const results = sequences.map((/** @type {{ ids: number[], temperature: number, model: number }} */ { ids, temperature, model }) =>
  scope(() => {
    const { hidden, routes } = models[model].forward(ids, createPackedContext([ids.length]), { recordRoutes: true })
    const { logprobs } = models[model].score(hidden, [...ids.slice(1), 0], { temperature })
    const bits = [...new Uint32Array(/** @type {Float32Array} */ (toArray(logprobs)).slice(0, -1).buffer)]
    return { bits, routes: routes === null ? null : Buffer.from(routes.data).toString('hex') }
  }),
)
process.stdout.write(JSON.stringify(results))
