/**
 * Finds the compiled addon, on the first call that needs it: importing the package does nothing.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { TrilithonError } from './errors.ts'
import type { MachineInfo } from './machine-info.ts'

/** What the .node file exports. Everything else in this package is a typed face over it. */
export interface Addon {
  describeMachine(): MachineInfo
}

// The same distance from src/ and from dist/.
const addonUrl = new URL('../build/Release/trilithon_native.node', import.meta.url)
let loaded: Addon | undefined

/** Loads an addon file. Separate from `loadAddon` so that a test can point it at a file that is missing or damaged. */
export function loadAddonFrom(file: string): Addon {
  if (!existsSync(file)) {
    throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon has not been built: ${file} does not exist.`, {
      hint: 'Run: ./trilithon build',
      details: { file },
    })
  }
  try {
    return createRequire(import.meta.url)(file) as Addon
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause)
    throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon cannot be loaded: ${reason}`, {
      hint: 'Run: ./trilithon build (the addon must be built on a machine like this one)',
      cause,
      details: { file },
    })
  }
}

/** The addon of this process; each worker thread gets its own instance. */
export function loadAddon(): Addon {
  loaded ??= loadAddonFrom(fileURLToPath(addonUrl))
  return loaded
}
