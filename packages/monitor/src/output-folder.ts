import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'

export interface OutputFolderOptions {
  readonly clean: boolean
  /** The run goes on from a checkpoint: its folder is its own. */
  readonly isResume: boolean
  /** Where the checkpoints lie when that is elsewhere. */
  readonly checkpointRoot: string
  /** Paths that must survive cleaning: the working directory, the model, the data. */
  readonly needed: readonly string[]
  /** What a run of this kind leaves, below the folder; `configs` alone is from a dry run. */
  readonly traces: readonly string[]
}

/** Why a run may not use this folder, as an `OUTPUT_UNUSABLE`; undefined where it may. Changes nothing. */
export function unusableOutput(
  folder: string,
  { clean, isResume, checkpointRoot, needed, traces }: OutputFolderOptions,
): TrilithonError | undefined {
  if (clean && isResume)
    return unusable(
      `clean_output_dir would delete the checkpoint in ${folder} that the run resumes from`,
      'Set clean_output_dir = false, or remove ckpt.resume_step.',
    )
  if (clean) {
    const lost = needed.find((path) => isWithin(path, folder))
    if (lost !== undefined)
      return unusable(`clean_output_dir would delete ${lost}, which the run needs`, 'Choose another folder with --output-dir.')
  }
  const found = [folder, checkpointRoot].flatMap((root) => traces.map((name) => join(root, name))).find(isUsed)
  if (found !== undefined && !isResume && !(clean && isWithin(found, folder)))
    return unusable(
      `${folder} holds another run (${found})`,
      'Choose another folder with --output-dir, go on with --ckpt.resume-step -1, or delete it with --clean-output-dir.',
    )
  return undefined
}

/**
 * Makes the folder of a run ready: refuses one that holds another run, unless this one resumes it or was asked to clean it. Throws `OUTPUT_UNUSABLE`
 * before anything is changed.
 */
export function prepareOutputFolder(folder: string, options: OutputFolderOptions): void {
  const problem = unusableOutput(folder, options)
  if (problem !== undefined) throw problem
  try {
    if (options.clean) rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
  } catch (cause) {
    throw unusable(`${folder} cannot be used: ${(cause as Error).message}`, 'Choose another folder with --output-dir.', cause)
  }
}

function unusable(message: string, hint: string, cause?: unknown): TrilithonError {
  return new TrilithonError('OUTPUT_UNUSABLE', message, { path: 'output_dir', hint, cause })
}

/** An empty folder is what a run leaves that never came to write. */
function isUsed(path: string): boolean {
  return existsSync(path) && (path.endsWith('.jsonl') || readdirSync(path).length > 0)
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(resolve(folder), resolve(path))
  return way === '' || !(way === '..' || way.startsWith('../') || way.startsWith('..\\'))
}
