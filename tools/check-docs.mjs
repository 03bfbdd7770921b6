// @ts-check
/**
 * Keeps documents true: their TypeScript compiles against the sources, their links lead somewhere, and what is to be released is announced.
 * A block marked `ts ignore` is a sketch and is not compiled.
 *
 *   node tools/check-docs.mjs
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { readMarkdown } from './lib/markdown.mjs'
import { report } from './lib/problems.mjs'
import { filesBelow, isMain, projectRoot, readText, workspaceMembers } from './lib/workspace.mjs'

/** @typedef {import('./lib/problems.mjs').Problem} Problem */
/** @typedef {import('./lib/markdown.mjs').Document} Document */

/** Every rule with the sentence that it stands for. One planted violation each is in `test/check-docs.test.mjs`. */
export const rules = {
  typescript: 'TypeScript in documents compiles.',
  block: 'A code block is closed, and marked by nothing but "ignore".',
  link: 'A relative link leads to a file, and its anchor to a heading.',
  changeset: 'Every package that was never released is announced in a changeset.',
}

/** @param {string} root @returns {{ problems: Problem[], documents: number, compiled: number }} */
export function checkDocs(root) {
  const isDocument = (/** @type {string} */ path) => path.endsWith('.md')
  const folders = ['docs', 'examples', 'native', 'packages', 'plugins', 'tools']
  const files = [...readdirSync(root).filter(isDocument), ...folders.flatMap((folder) => filesBelow(root, folder, isDocument))]
  const documents = new Map(files.map((file) => [file, readMarkdown(readText(root, file))]))
  const { problems, compiled } = checkBlocks(root, documents)
  return { problems: [...problems, ...checkLinks(root, documents), ...checkChangesets(root)], documents: files.length, compiled }
}

/** @param {string} root @param {Map<string, Document>} documents @returns {{ problems: Problem[], compiled: number }} */
function checkBlocks(root, documents) {
  /** @type {Problem[]} */
  const problems = []
  /** Document and name of each module that is compiled. @type {Map<string, string>} */
  const modules = new Map()
  // A folder of its own, ignored by git, in which every package of the workspace can be imported by name as a user would.
  const folder = join(root, '.nx', 'docs')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [file, { blocks }] of documents) {
    for (const { info, code, line, isClosed } of blocks) {
      const [language, ...marks] = info.split(/\s+/)
      if (!isClosed)
        problems.push({ file, line, rule: 'block', message: 'A code block is not closed.', hint: 'End it with the fence that opens it.' })
      if (language !== 'ts' && language !== 'typescript') continue
      if (marks.some((mark) => mark !== 'ignore')) {
        const hint = 'Write ts for a block that compiles and ts ignore for a sketch.'
        problems.push({ file, line, rule: 'block', message: `A block is marked "${info}".`, hint })
      }
      if (marks.length > 0) continue
      const name = `${file.replaceAll('/', '__')}.${line}.mts`
      modules.set(name, file)
      // Blank lines before it, so that the compiler's line is the document's.
      writeFileSync(join(folder, name), `${'\n'.repeat(line)}${code}\nexport {}\n`)
    }
  }
  if (modules.size > 0) {
    linkPackages(root, folder)
    const compilerOptions = { noEmit: true, noUnusedLocals: false, noUnusedParameters: false }
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: '../../tsconfig.base.json', compilerOptions, include: ['*.mts'] }),
    )
    const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
    const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
      cwd: folder,
      encoding: 'utf8',
    })
    const found = [...stdout.matchAll(/^([^\s(]+)\((\d+),\d+\): error (.*)$/gm)].map(([, name = '', line, message]) => ({
      file: modules.get(name) ?? posix.join('.nx/docs', name),
      line: Number(line),
      rule: 'typescript',
      message: `It does not compile: ${message}`,
      hint: modules.has(name) ? 'Mend it, or mark the block as a sketch: ts ignore.' : 'Mend that source; a document imports it.',
    }))
    if (status !== 0 && found.length === 0) throw new Error(`tsc failed: ${stdout}${stderr}`)
    problems.push(...found)
  }
  return { problems, compiled: modules.size }
}

/** Packages of the workspace, and what they depend on, as if they were installed in `folder`. @param {string} root @param {string} folder */
function linkPackages(root, folder) {
  const link = (/** @type {string} */ name, /** @type {string} */ target) => {
    const path = join(folder, 'node_modules', name)
    if (existsSync(path) || !existsSync(target)) return
    mkdirSync(dirname(path), { recursive: true })
    symlinkSync(target, path)
  }
  for (const { kind, folder: member, manifest } of workspaceMembers(root)) {
    if (kind === 'example' || manifest?.name === undefined) continue
    link(manifest.name, join(root, member))
    for (const name of Object.keys({ ...manifest.dependencies })) link(name, join(root, member, 'node_modules', name))
  }
}

/** @param {string} root @param {Map<string, Document>} documents @returns {Problem[]} */
function checkLinks(root, documents) {
  /** @type {Problem[]} */
  const problems = []
  for (const [file, { links }] of documents) {
    for (const { target, line } of links) {
      if (/^[a-z][a-z+.-]*:/i.test(target)) continue
      const [path = '', anchor] = decodeURI(target).split('#')
      const at = path === '' ? file : posix.join(posix.dirname(file), path)
      const add = (/** @type {string} */ message, /** @type {string} */ hint) => problems.push({ file, line, rule: 'link', message, hint })
      if (path.startsWith('/')) add(`The link ${target} starts with a slash.`, 'Write it relative to this document.')
      else if (at.startsWith('../') || !existsSync(join(root, at))) add(`The link ${target} leads to no file.`, 'Mend the path.')
      else if (
        anchor !== undefined &&
        statSync(join(root, at)).isFile() &&
        documents.get(at)?.headings.every(({ slug }) => slug !== anchor)
      )
        add(`The link ${target} names no heading of ${at}.`, `Use the anchor of a heading there.`)
    }
  }
  return problems
}

/** @param {string} root @returns {Problem[]} */
function checkChangesets(root) {
  const folder = join(root, '.changeset')
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md') : []
  const announced = new Map(
    files.flatMap((file) =>
      [...(/^---\n(.*?)\n---/s.exec(readText(root, `.changeset/${file}`))?.[1] ?? '').matchAll(/^["']?([^"':]+)["']?:/gm)].map(
        ([, name = '']) => [name, `.changeset/${file}`],
      ),
    ),
  )
  const members = workspaceMembers(root).filter(({ kind, manifest }) => kind !== 'example' && manifest?.private !== true)
  const names = members.map(({ manifest }) => manifest?.name ?? '')
  return [
    ...members
      .filter(({ manifest }) => manifest?.version === '0.0.0' && !announced.has(manifest.name ?? ''))
      .map(({ folder: member, manifest }) => ({
        file: `${member}/package.json`,
        rule: 'changeset',
        message: `${manifest?.name} was never released and no changeset names it.`,
        hint: `Add to .changeset/first.md: "${manifest?.name}": minor`,
      })),
    ...[...announced]
      .filter(([name]) => !names.includes(name))
      .map(([name, file]) => ({
        file,
        rule: 'changeset',
        message: `It names ${name}, which is not a package of the workspace.`,
        hint: 'Remove the line.',
      })),
  ]
}

if (isMain(import.meta.url)) {
  const { problems, documents, compiled } = checkDocs(projectRoot)
  report(problems, `${documents} documents: links lead somewhere, ${compiled} blocks of TypeScript compile`)
}
