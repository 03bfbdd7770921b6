// @ts-check
/**
 * Lets Node 20 import TypeScript sources: types are erased by the vite that vitest brings. Only for the import probe; a program is built instead.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** @type {typeof import('vite').transformWithOxc} */
let erase

export async function initialize(/** @type {{ vite: string }} */ { vite }) {
  erase = (await import(vite)).transformWithOxc
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  if (!/\.m?ts$/.test(new URL(url).pathname)) return next(url, context)
  const path = fileURLToPath(url)
  const { code } = await erase(await readFile(path, 'utf8'), path, { sourcemap: false })
  return { format: 'module', source: code, shortCircuit: true }
}
