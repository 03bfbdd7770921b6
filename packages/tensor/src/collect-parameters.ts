import { Parameter } from './parameter.ts'
import { refuse } from './refuse.ts'

/** Something that names its parameters itself. */
export interface Module {
  parameters(): Iterable<Parameter>
}

/**
 * All parameters in `tree`, in the order of declaration: parameters, modules, and arrays, maps and plain objects of such. One that is reached twice
 * (tied weights) is listed once; two with one name are refused.
 */
export function collectParameters(tree: unknown): readonly Parameter[] {
  const found = new Map<string, Parameter>()
  walk(tree, found, new Set())
  return [...found.values()]
}

function walk(node: unknown, found: Map<string, Parameter>, seen: Set<object>): void {
  if (typeof node !== 'object' || node === null || seen.has(node)) return
  seen.add(node)
  if (node instanceof Parameter) {
    if (found.has(node.name)) refuse('collectParameters', node.name, 'one parameter of that name', 'two')
    found.set(node.name, node)
  } else if (isModule(node)) {
    for (const parameter of node.parameters()) walk(parameter, found, seen)
  } else {
    const values = Array.isArray(node) ? node : node instanceof Map ? node.values() : isPlain(node) ? Object.values(node) : []
    for (const value of values) walk(value, found, seen)
  }
}

function isModule(node: object): node is Module {
  return typeof (node as { parameters?: unknown }).parameters === 'function'
}

function isPlain(node: object): boolean {
  const prototype = Object.getPrototypeOf(node)
  return prototype === Object.prototype || prototype === null
}

/** Elements in all, as a number that is exact below 2^53. */
export function countElements(parameters: Iterable<{ readonly elements: number }>): number {
  let count = 0
  for (const { elements } of parameters) count += elements
  return count
}
