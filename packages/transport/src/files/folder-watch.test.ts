import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/temporary-folder.ts'
import { pollMs, watchFolders } from './folder-watch.ts'

const timeOf = async (run: Promise<void>) => {
  const start = performance.now()
  await run
  return performance.now() - start
}

// Times of a machine that may have other things to do.
describe('promptly', { retry: 3 }, () => {
  test('the first wait ends at once, since something may have come before the watch; later ones after the time between looks', async () => {
    const watch = watchFolders([temporaryFolder()])
    expect(await timeOf(watch.changed())).toBeLessThan(pollMs / 2)
    expect(await timeOf(watch.changed())).toBeGreaterThan(pollMs - 10)
    watch.close()
  })

  test('a change between two waits ends the second', async () => {
    const folder = temporaryFolder()
    const watch = watchFolders([folder])
    await watch.changed()
    writeFileSync(join(folder, 'file'), '')
    await sleep(20)
    expect(await timeOf(watch.changed())).toBeLessThan(pollMs / 2)
    watch.close()
  })

  test('a folder that appears is watched from then on', async () => {
    const folder = temporaryFolder()
    const inner = join(folder, 'inner')
    const watch = watchFolders([folder, inner])
    await watch.changed()
    mkdirSync(inner)
    // The outer one tells of it, then its own watch begins.
    await watch.changed()
    await watch.changed()
    await watch.changed()
    const waiting = timeOf(watch.changed())
    writeFileSync(join(inner, 'file'), '')
    expect(await waiting).toBeLessThan(pollMs / 2)
    watch.close()
  })
})

test('a signal ends a wait with its reason', async () => {
  const watch = watchFolders([])
  const controller = new AbortController()
  const waiting = watch.changed(controller.signal)
  controller.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  await expect(watch.changed(controller.signal)).rejects.toThrow('enough')
  watch.close()
})
