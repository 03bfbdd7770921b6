import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'

/**
 * The folder of a model or a tokeniser that the configuration names: a path, or the name of a snapshot in the local Hugging Face cache. `file` says
 * what has to be in it. Throws `MODEL_NOT_FOUND`.
 */
export function resolveModelFolder(
  name: string,
  { workingDirectory, environment, file, path }: { workingDirectory: string; environment: NodeJS.ProcessEnv; file: string; path: string },
): string {
  const local = resolve(workingDirectory, name)
  if (existsSync(join(local, file))) return local
  const cache = environment.HF_HUB_CACHE ?? join(environment.HF_HOME ?? join(homedir(), '.cache', 'huggingface'), 'hub')
  const snapshot = /^[\w.-]+\/[\w.-]+$/.test(name) ? findSnapshot(join(cache, `models--${name.replace('/', '--')}`), file) : undefined
  if (snapshot !== undefined) return snapshot
  throw new TrilithonError('MODEL_NOT_FOUND', `There is no ${file} in ${local}, nor in the local Hugging Face cache for ${name}.`, {
    path,
    hint: 'Give the folder of a model; nothing is downloaded.',
  })
}

/** The revision that the cache calls `main`, else the first that has the file. */
function findSnapshot(folder: string, file: string): string | undefined {
  const snapshots = join(folder, 'snapshots')
  if (!existsSync(snapshots)) return undefined
  const main = join(folder, 'refs', 'main')
  const revisions = [...(existsSync(main) ? [readFileSync(main, 'utf8').trim()] : []), ...readdirSync(snapshots).sort()]
  return revisions.map((revision) => join(snapshots, revision)).find((snapshot) => existsSync(join(snapshot, file)))
}
