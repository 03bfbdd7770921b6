// @ts-check
/** Another process: the trainer of RL from the built package, as a launcher starts it. Ends by SIGTERM in order; an error is printed as JSON. */
import { silentLogger } from '@trilithon/core'
import { prepareRl, runRl } from '@trilithon/trainer'

const { config, workingDirectory } = JSON.parse(process.argv[2] ?? '')
const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
try {
  const setup = prepareRl({ config, workingDirectory, environment: {} })
  const end = await runRl({ setup, output: process.stdout, log: silentLogger, signal: stop.signal })
  process.exitCode = end === 'done' ? 0 : 130
} catch (error) {
  process.stderr.write(JSON.stringify(error))
  process.exitCode = 1
}
process.disconnect?.()
