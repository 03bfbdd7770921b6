import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'

const gib = 2 ** 30

/**
 * The file system that checkpoints are written to, under prime-rl's names. `free` is what this user may still write; what is reserved for others is
 * neither free nor used. `folder` need not be there yet.
 */
export function diskMetrics(folder: string): Record<string, number> {
  let existing = folder
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing)
  const { bsize, blocks, bfree, bavail } = statfsSync(existing)
  return {
    'system/ckpt_disk_free_gib': (bavail * bsize) / gib,
    'system/ckpt_disk_used_gib': ((blocks - bfree) * bsize) / gib,
    'system/ckpt_disk_total_gib': (blocks * bsize) / gib,
    'system/ckpt_disk_free_ratio': blocks === 0 ? 0 : bavail / blocks,
  }
}
