// @ts-check
/** The packages of the workspace and their files. Paths are relative to the root and written with `/`. */
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of this project. */
export const projectRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** Whether the module of this address is the program itself, not imported by one. @param {string} url its `import.meta.url` */
export const isMain = (url) => process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(url)

/**
 * @typedef {object} Manifest
 * @property {string} [name]
 * @property {string} [version]
 * @property {string} [license]
 * @property {boolean} [private]
 * @property {Record<string, string>} [scripts]
 * @property {Record<string, unknown>} [exports]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [devDependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, string>} [optionalDependencies]
 */

/**
 * @typedef {object} Member a package of the workspace, or an example
 * @property {'package' | 'native' | 'plugin' | 'example'} kind
 * @property {string} folder `packages/core`
 * @property {Manifest | undefined} manifest undefined for an example that is only files
 */

/** Folders that hold no source of ours. Fixtures are data of tests and may be wrong on purpose. */
const skipped = new Set(['node_modules', 'dist', 'build', '__fixtures__'])

/**
 * Files below a folder, sorted, without what is installed, built or hidden.
 * @param {string} root @param {string} folder @param {(path: string) => boolean} accept @param {Set<string>} [skip]
 * @returns {string[]}
 */
export function filesBelow(root, folder, accept, skip = skipped) {
  if (!existsSync(join(root, folder))) return []
  /** @type {string[]} */
  const found = []
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) {
      if (!skip.has(entry.name) && !entry.name.startsWith('.')) found.push(...filesBelow(root, path, accept, skip))
    } else if (entry.isFile() && accept(path)) found.push(path)
  }
  return found.sort()
}

/** @param {string} root @param {string} file @returns {string} */
export const readText = (root, file) => readFileSync(join(root, file), 'utf8')

/** @param {string} root @param {string} folder @returns {Manifest} */
export const readManifest = (root, folder) => JSON.parse(readText(root, folder === '' ? 'package.json' : `${folder}/package.json`))

/** Everything that has a place on a floor, sorted by folder. @param {string} root @returns {Member[]} */
export function workspaceMembers(root) {
  /** @type {Member[]} */
  const members = []
  /** @param {Member['kind']} kind @param {string} folder */
  const add = (kind, folder) => {
    const hasManifest = existsSync(join(root, folder, 'package.json'))
    if (hasManifest || kind === 'example') members.push({ kind, folder, manifest: hasManifest ? readManifest(root, folder) : undefined })
  }
  for (const [kind, parent] of /** @type {const} */ ([
    ['package', 'packages'],
    ['plugin', 'plugins'],
    ['example', 'examples'],
  ])) {
    if (!existsSync(join(root, parent))) continue
    for (const entry of readdirSync(join(root, parent), { withFileTypes: true }))
      if (entry.isDirectory()) add(kind, `${parent}/${entry.name}`)
  }
  add('native', 'native')
  return members.sort((a, b) => (a.folder < b.folder ? -1 : 1))
}
