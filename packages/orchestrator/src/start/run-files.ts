import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { rolloutStepFolder } from '@trilithon/transport'
import type { OrchestratorConfiguration } from '../configuration/orchestrator-schema.ts'
import { pruneCheckpoints, writeCheckpoint } from '../progress/progress.ts'
import type { RunFiles } from '../run/orchestrator-parts.ts'
import { orchestratorFolders } from './orchestrator-setup.ts'

/** The files of a run below the orchestrator's folder. `saveRecords` rejects with `OUTPUT_UNUSABLE`. */
export function createRunFiles(outputFolder: string, ckpt: OrchestratorConfiguration['ckpt']): RunFiles {
  const { rollouts, checkpoints } = orchestratorFolders(outputFolder)
  return {
    async saveRecords(step, name, records) {
      const folder = rolloutStepFolder(rollouts, step)
      const path = join(folder, name)
      try {
        await mkdir(folder, { recursive: true })
        await writeFile(`${path}.tmp`, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
        await rename(`${path}.tmp`, path)
      } catch (cause) {
        throw new TrilithonError('OUTPUT_UNUSABLE', `${path} could not be written: ${(cause as Error).message}`, {
          path,
          hint: 'Make room on the disk, and resume from the last checkpoint.',
          cause,
        })
      }
    },
    saveCheckpoint:
      ckpt === null
        ? null
        : (progress) => {
            writeCheckpoint(checkpoints, progress)
            pruneCheckpoints(checkpoints, ckpt.keep_last, ckpt.keep_interval)
          },
  }
}
