// @ts-check
/** Reads a TypeScript or JavaScript module: its syntax tree, its imports, its lines of code. The parser is the one that vite ships (oxc). */
import { parseSync } from 'vite'

/** @typedef {{ type: string, start: number, end: number, [key: string]: any }} Node */

/**
 * @typedef {object} SourceModule
 * @property {Node} program
 * @property {{ start: number, end: number }[]} comments
 * @property {string | undefined} syntaxError
 * @property {(offset: number) => number} lineOf 1-based line of an offset
 */

/** @param {string} path @param {string} text @returns {SourceModule} */
export function parseModule(path, text) {
  const { program, comments, errors } = parseSync(path, text)
  const lineOf = (/** @type {number} */ offset) => text.slice(0, offset).split('\n').length
  return { program: /** @type {Node} */ (/** @type {unknown} */ (program)), comments, syntaxError: errors[0]?.message, lineOf }
}

/** Calls `visit` for every node of the tree, parents first. @param {Node} node @param {(node: Node, parent: Node | undefined) => void} visit @param {Node} [parent] */
export function walk(node, visit, parent) {
  visit(node, parent)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value])
      if (child !== null && typeof child === 'object' && typeof child.type === 'string') walk(child, visit, node)
  }
}

/**
 * Specifier that a node loads: of an import, a re-export, `import()`, `import('x').Type`, `require`, `require.resolve`, `import.meta.resolve`.
 * undefined for other nodes and for specifiers that are only known at run time.
 * @param {Node} node @returns {string | undefined}
 */
export function specifierOf(node) {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return literal(node.source)
    case 'TSExternalModuleReference':
      return literal(node.expression)
    case 'CallExpression': {
      const callee = node.callee
      const loads =
        (callee.type === 'Identifier' && callee.name === 'require') ||
        (callee.type === 'MemberExpression' &&
          callee.property.name === 'resolve' &&
          (callee.object.type === 'MetaProperty' || callee.object.name === 'require'))
      return loads ? literal(node.arguments[0]) : undefined
    }
    default:
      return undefined
  }
}

/** @param {Node | null | undefined} node @returns {string | undefined} */
const literal = (node) => (node?.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined)

/** Lines that hold code: neither blank nor only a comment. @param {string} path @param {string} text */
export function codeLines(path, text) {
  let code = text
  for (const { start, end } of parseModule(path, text).comments)
    code = code.slice(0, start) + code.slice(start, end).replace(/[^\n]/g, ' ') + code.slice(end)
  return code.split('\n').filter((line) => line.trim() !== '').length
}
