import { fileURLToPath } from 'node:url'

/** The JavaScript file that an environment worker's process runs. From the sources, as tests run them, it is that of the build. */
export const environmentWorkerEntry: string = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/environment-worker/main.js' : './main.js', import.meta.url),
)
