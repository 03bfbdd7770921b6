import { runEnvironmentWorker } from '@trilithon/environments'
import { createLetterRenderer } from './letter-renderer.mjs'

await runEnvironmentWorker(createLetterRenderer)
