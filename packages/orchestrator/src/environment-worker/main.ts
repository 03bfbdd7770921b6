/**
 * The entrance of an environment worker's process: it brings the renderers, everything else is the environments' own. Importing it starts the worker; only
 * `environmentWorkerEntry` names it.
 *
 * @module
 */
import { runEnvironmentWorker } from '@trilithon/environments'
import { createTurnRenderer } from './create-turn-renderer.ts'

await runEnvironmentWorker(createTurnRenderer)
