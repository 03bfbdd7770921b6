import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadFile } from './load-file.ts'
import { mergeNodes, nodeAt, sourceAt, type TableNode, toPlain } from './tree.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-load-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, content: string | Uint8Array): string {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), content)
  return name
}

function failure(name: string): TrilithonError {
  try {
    loadFile(name, folder)
  } catch (error) {
    if (TrilithonError.is(error)) return error
    throw error
  }
  throw new Error(`${name} was read`)
}

const whole = (name: string) => loadFile(name, folder).reduce((below, above) => mergeNodes(below, above) as TableNode)
const plain = (name: string) => JSON.parse(JSON.stringify(toPlain(whole(name))))

describe('loadFile', () => {
  it('reads every form of TOML key and keeps line and column', () => {
    const file = write('forms.toml', 'a.b = 1_000\n[x.y]\n  z = ["a", {q = 1}]\n[[e]]\nid = "r"\n[e.sub]\nk = true\n[[e]]\n"q-s".t = 1.5\n')
    expect(plain(file)).toEqual({
      a: { b: 1000 },
      x: { y: { z: ['a', { q: 1 }] } },
      e: [{ id: 'r', sub: { k: true } }, { 'q-s': { t: 1.5 } }],
    })
    const tree = whole(file)
    expect(sourceAt(tree, ['x', 'y', 'z', '1', 'q'])).toEqual({ kind: 'file', file, line: 3, column: 14 })
    expect(sourceAt(tree, ['e', '1', 'q-s', 't'])).toMatchObject({ line: 9 })
    expect(sourceAt(tree, ['e', '0', 'missing'])).toMatchObject({ line: 4 })
  })

  it('reads the same from YAML and JSON, with places', () => {
    const yaml = write('a.yaml', 'a:\n  b: 1\n  c: [x, "1e5"]\n')
    const json = write('a.json', '{\n "a": {"b": 1,\n "c": ["x", "1e5"]}}')
    expect(plain(yaml)).toEqual({ a: { b: 1, c: ['x', '1e5'] } })
    expect(plain(json)).toEqual(plain(yaml))
    expect(sourceAt(whole(yaml), ['a', 'c'])).toMatchObject({ line: 3, column: 3 })
    expect(sourceAt(whole(json), ['a', 'c'])).toMatchObject({ line: 3, column: 2 })
  })

  it('keeps an integer beyond 2^53 exact', () => {
    const node = nodeAt(whole(write('big.toml', 'n = 9007199254740993\nm = 1_000_000_000_000')), ['n'])
    expect(node).toMatchObject({ value: 9007199254740993n })
    expect(plain(write('trillion.toml', 'm = 1_000_000_000_000'))).toEqual({ m: 1e12 })
  })

  it('puts included files below, relative to the file that names them', () => {
    write('base/one.toml', 'a = 1\nb = 1\n[t]\nx = 1\n')
    write('base/two.toml', '"@" = "one.toml"\nb = 2\n')
    const file = write('top.toml', '"@" = ["base/two.toml"]\n[t]\ny = 3\n')
    expect(plain(file)).toEqual({ a: 1, b: 2, t: { x: 1, y: 3 } })
  })

  it.each([
    ['missing.toml', undefined, 'CONFIG_FILE_UNREADABLE', 'missing.toml cannot be read: there is no such file'],
    ['.', undefined, 'CONFIG_FILE_UNREADABLE', `is a directory`],
    ['latin.toml', Uint8Array.of(0x61, 0x3d, 0x22, 0xe9, 0x22), 'CONFIG_FILE_UNREADABLE', 'latin.toml is not UTF-8 text'],
    ['run.ini', 'a=1', 'CONFIG_FILE_UNREADABLE', 'run.ini is neither .toml, .yaml, .yml nor .json'],
    ['syntax.toml', 'a = 1\nb = \n', 'CONFIG_SYNTAX_INVALID', 'this is not TOML'],
    ['twice.toml', 'a = 1\nb = 2\na = 3\n', 'CONFIG_KEY_DUPLICATE', '`a` is written twice'],
    ['tables.toml', '[a]\n[b]\n[a]\n', 'CONFIG_KEY_DUPLICATE', '`[a]` is written twice'],
    ['twice.yaml', 'a: 1\na: 2\n', 'CONFIG_KEY_DUPLICATE', 'a key is written twice'],
    ['twice.json', '{"a": 1,\n"a": 2}', 'CONFIG_KEY_DUPLICATE', 'a key is written twice'],
    ['syntax.json', '{"a": ', 'CONFIG_SYNTAX_INVALID', 'this is neither YAML nor JSON'],
    ['list.yaml', '- a\n', 'CONFIG_SYNTAX_INVALID', 'the file holds no table of keys'],
    ['include.toml', '"@" = 3\n', 'CONFIG_VALUE_INVALID', '"@" takes a file name or a list of file names'],
  ])('%s is one error', (name, content, code, message) => {
    if (content !== undefined) write(name, content)
    const error = failure(name)
    expect(error.code).toBe(code)
    expect(error.message).toContain(message)
    expect(error.hint).toBeTruthy()
  })

  it('names the line of a fault', () => {
    expect(failure(write('line.toml', 'a = 1\n\nb = [1,\n'))).toMatchObject({ source: { file: 'line.toml' } })
    expect(failure(write('line2.toml', 'a = 1\na = 2\n')).source).toMatchObject({ line: 2 })
  })

  it('tells a circle of includes, however long, and where a missing one is named', () => {
    write('c/a.toml', '"@" = "b.toml"\n')
    write('c/b.toml', '"@" = "a.toml"\n')
    expect(failure('c/a.toml')).toMatchObject({
      code: 'CONFIG_CYCLE',
      message: 'c/a.toml includes itself: c/a.toml -> c/b.toml -> c/a.toml',
    })
    write('self.toml', '"@" = "self.toml"\n')
    expect(failure('self.toml').code).toBe('CONFIG_CYCLE')
    write('dangling.toml', 'x = 1\n"@" = "nowhere.toml"\n')
    expect(failure('dangling.toml')).toMatchObject({ code: 'CONFIG_FILE_UNREADABLE', source: { file: 'dangling.toml', line: 2 } })
  })
})
