import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { diskMetrics } from './disk-metrics.ts'

test('they are what df says of the file system, also of a folder that is not there yet', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-disk-'))
  const kib = execFileSync('df', ['-kP', folder], { encoding: 'utf8' }).trim().split('\n').at(-1)?.trim().split(/\s+/) ?? []
  const [total = 0, used = 0, free = 0] = kib.slice(1, 4).map((count) => Number(count) / 2 ** 20)
  for (const path of [folder, join(folder, 'run', 'checkpoints')]) {
    const metrics = diskMetrics(path)
    expect(metrics['system/ckpt_disk_total_gib']).toBeCloseTo(total, 4)
    // Others write while this runs.
    expect(Math.abs((metrics['system/ckpt_disk_used_gib'] ?? 0) - used)).toBeLessThan(1)
    expect(Math.abs((metrics['system/ckpt_disk_free_gib'] ?? 0) - free)).toBeLessThan(1)
    expect(metrics['system/ckpt_disk_free_ratio']).toBeCloseTo((metrics['system/ckpt_disk_free_gib'] ?? 0) / total, 6)
  }
  rmSync(folder, { recursive: true })
})
