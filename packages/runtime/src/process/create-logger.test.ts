import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLogger, logLevelOf } from './create-logger.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-log-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function written(options: { json: boolean; colors?: boolean }): Promise<string> {
  const file = join(folder, 'log')
  const fd = openSync(file, 'w')
  const log = await createLogger({ level: 'info', fd, name: 'trainer', ...options })
  log.debug('hidden')
  log.child({ plugin: 'p' }).info('weights published', { version: 3 })
  log.error('failed', { error: new Error('boom') })
  closeSync(fd)
  return readFileSync(file, 'utf8')
}

describe('createLogger', () => {
  it('writes one JSON object per line, fields beside the message, at once', async () => {
    const lines = (await written({ json: true })).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { name: 'trainer', plugin: 'p', version: 3, msg: 'weights published' },
      { msg: 'failed', error: { message: 'boom' } },
    ])
  })

  it('writes text for people, coloured only when asked', async () => {
    const text = await written({ json: false })
    expect(text).toContain('weights published')
    expect(text).not.toContain('hidden')
    expect(text).not.toContain('\u001b[')
    expect(await written({ json: false, colors: true })).toContain('\u001b[')
  })
})

it("knows prime-rl's level names", () => {
  expect(['TRACE', 'debug', 'info', 'success', 'warning', 'error', 'critical'].map(logLevelOf)).toEqual([
    'debug',
    'debug',
    'info',
    'info',
    'warn',
    'error',
    'error',
  ])
})
