import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ErrorCode } from '@trilithon/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { prepareOutputFolder } from './output-folder.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-folder-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const fails = (code: ErrorCode, message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) }) as Error

describe('the output folder', () => {
  const options = { clean: false, isResume: false, checkpointRoot: '', needed: [] as string[], traces: ['metrics.jsonl', 'checkpoints'] }
  const prepare = (changes: Partial<typeof options> = {}) => {
    const out = join(folder, 'out')
    prepareOutputFolder(out, { ...options, checkpointRoot: out, ...changes })
  }

  it('of another run is refused and left as it was', () => {
    prepare()
    mkdirSync(join(folder, 'out', 'checkpoints', 'step_1'), { recursive: true })
    mkdirSync(join(folder, 'out', 'configs'))
    expect(() => prepare()).toThrow(fails('OUTPUT_UNUSABLE', /holds another run/))
    expect(existsSync(join(folder, 'out', 'checkpoints', 'step_1'))).toBe(true)
    prepare({ isResume: true })
    expect(existsSync(join(folder, 'out', 'checkpoints', 'step_1'))).toBe(true)
    prepare({ clean: true })
    expect(readdirSync(join(folder, 'out'))).toEqual([])
  })

  it('is never cleaned of what the run needs', () => {
    expect(() => prepare({ clean: true, needed: [join(folder, 'out', 'model')] })).toThrow(fails('OUTPUT_UNUSABLE', /out\/model/))
    expect(() => prepare({ clean: true, isResume: true })).toThrow(fails('OUTPUT_UNUSABLE', /resumes from/))
  })

  it('that cannot be made is refused', () => {
    writeFileSync(join(folder, 'out'), 'a file')
    expect(() => prepare()).toThrow(fails('OUTPUT_UNUSABLE', /cannot be used/))
  })
})
