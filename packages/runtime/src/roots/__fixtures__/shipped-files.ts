import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RootName } from '../../compose/root-definitions.ts'

export const project = fileURLToPath(new URL('../../../../..', import.meta.url))
const shared = join(project, '../shared')
/** The files that prime-rl 0.6.0 ships; they lie beside the project, not in it. */
export const shippedFolder = join(shared, 'prime-rl-0.6.0-configs')
/** Whether the tests that need those files can run at all. */
export const sharedIsHere = existsSync(shared)

/** Paths below `shippedFolder`, sorted. */
export const shippedFiles: readonly string[] = existsSync(shippedFolder)
  ? readdirSync(shippedFolder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.toml'))
      .map((file) => file.replaceAll('\\', '/'))
      .sort()
  : []

/** The root that a file of prime-rl belongs to; an overlay stands on top of its base. */
export function placeOf(file: string): { root: RootName; files: string[] } {
  const overlay = /slurm_(rl|sft)\.toml$/.exec(file)
  if (overlay !== null) return { root: overlay[1] as RootName, files: [file.replace('slurm_', ''), file] }
  if (/(inference|infer)\.toml$/.test(file)) return { root: 'inference', files: [file] }
  if (/(orchestrator|orch)\.toml$/.test(file)) return { root: 'orchestrator', files: [file] }
  if (/trainer\.toml$|debug\/rl\/train\.toml$/.test(file)) return { root: 'trainer', files: [file] }
  if (/\/sft\.toml$|reverse_text_sft|debug\/(moe\/)?sft\//.test(file) && !file.includes('training_modes'))
    return { root: 'sft', files: [file] }
  return { root: 'rl', files: [file] }
}
