// @ts-check
/**
 * `trilithon new plugin` for those who work with nx, which adds its dry run and its consoles:
 *
 *   node_modules/.bin/nx generate ./tools/nx-plugin:plugin my-router --seam router --dry-run
 *
 * What is written is planned by the command line: the templates are part of @trilithon/cli, because an installed command line has no nx. So
 * there is one set of templates and one way to fill them, and nx's own `generateFiles` is not used. Needs a built clone.
 */
import { planPlugin } from '../../packages/cli/dist/index.js'

/**
 * @param {import('@nx/devkit').Tree} tree @param {{ name: string, seam: string }} options
 * @returns {() => void} what nx calls when the files are written
 */
export default function generatePlugin(tree, { name, seam }) {
  const { files, next } = plan(tree, name, seam)
  for (const { path, text } of files) tree.write(path, text)
  return () => console.log(`\nNext:\n${next.map((step) => `  ${step}`).join('\n')}`)
}

/** nx shows the message of an error alone, so what to do next goes into it. @param {import('@nx/devkit').Tree} tree @param {string} name @param {string} seam */
function plan(tree, name, seam) {
  try {
    return planPlugin({ name, seam, place: 'workspace', exists: (path) => tree.exists(path) })
  } catch (error) {
    const { message, hint } = /** @type {Error & { hint?: string }} */ (error)
    throw hint === undefined ? error : new Error(`${message}. ${hint}`, { cause: error })
  }
}
