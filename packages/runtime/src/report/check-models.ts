import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Composition, UnavailableKey } from '../compose/composition.ts'
import { joinPath, sourceAt, splitPath, valueAt } from '../config/tree.ts'

/** Where each root names the model whose files it needs. */
const modelKeys: Readonly<Record<string, string>> = {
  trainer: 'model.name',
  sft: 'model.name',
  orchestrator: 'student.model.name',
  inference: 'model.name',
}

/** Models, each once, that are neither a folder nor in the local Hugging Face cache. A dry run lists them, a real start needs them. */
export function missingModels(composition: Composition, environment: NodeJS.ProcessEnv): UnavailableKey[] {
  const told = new Set<string>()
  return composition.mounts.flatMap(({ root, at, owner }) => {
    const key = modelKeys[root.name]
    if (key === undefined) return []
    const name = valueAt(composition.resolved[root.name], splitPath(key))
    if (typeof name !== 'string' || isModel(name, composition.run.workingDirectory, environment)) return []
    // Roles share the model: one missing folder is one sentence.
    if (told.has(name)) return []
    told.add(name)
    const path = [...at, ...splitPath(key)]
    return [
      {
        path: joinPath(path),
        value: name,
        source: sourceAt(composition.tree, path),
        owner,
        reason: `there is no model folder ${name} (no config.json in it), and the local Hugging Face cache does not hold that name`,
        hint: 'Give the folder of a model; nothing is downloaded.',
        code: 'MODEL_NOT_FOUND' as const,
      },
    ]
  })
}

function isModel(name: string, workingDirectory: string, environment: NodeJS.ProcessEnv): boolean {
  if (existsSync(resolve(workingDirectory, name, 'config.json'))) return true
  const cache = environment.HF_HUB_CACHE ?? join(environment.HF_HOME ?? join(homedir(), '.cache', 'huggingface'), 'hub')
  return /^[\w.-]+\/[\w.-]+$/.test(name) && existsSync(join(cache, `models--${name.replace('/', '--')}`))
}
