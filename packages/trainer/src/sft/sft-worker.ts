/** The training thread of `sft`. Its only effect is that of the run it is started for. */
import { serveThread } from '../run/serve-thread.ts'
import { runSftHere, type SftSetup } from './sft-run.ts'

await serveThread<SftSetup>(({ setup, send, isStopped }) => runSftHere({ setup, listener: send, isStopped }))
