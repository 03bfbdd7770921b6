/** The training thread of `trainer`. Its only effect is that of the run it is started for. */
import { serveThread } from '../run/serve-thread.ts'
import type { RlBatch } from './rl-event.ts'
import { runRlHere } from './rl-run.ts'
import type { RlSetup } from './rl-setup.ts'

await serveThread<RlSetup, RlBatch>(({ setup, send, isStopped, receive }) => runRlHere({ setup, receive, listener: send, isStopped }))
