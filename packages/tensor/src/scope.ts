/**
 * Scopes decide how long tensors live: nothing here waits for garbage collection.
 *
 * One stack of scopes per thread. What is made outside every scope belongs to its maker, who disposes it.
 */
import { Lifetime, Owned } from './owned.ts'
import { refuse } from './refuse.ts'

let current: Lifetime | null = null

/** Puts something new into the innermost scope. */
export function adopt(member: Owned): void {
  if (current !== null) current.add(member)
}

/**
 * Runs `body` and frees every tensor made inside but those it returns or keeps; when it throws, all that it has not kept.
 *
 * Tensors are found in the returned value itself and in arrays, maps and plain objects in it, at any depth; they pass to the enclosing scope.
 * `body` is synchronous: a promise is refused, since its tensors would be freed before it goes on.
 */
export function scope<T>(body: () => T): T {
  const outer = current
  const own = new Lifetime()
  current = own
  try {
    const result = body()
    if (isPromise(result)) {
      // What the promise says later is beside the point: its tensors are gone.
      result.then(undefined, () => undefined)
      refuse('scope', 'body', 'a synchronous function', 'one that returns a promise')
    }
    forEachOwned(result, (member) => {
      if (member.owner !== own) return
      own.remove(member)
      if (outer !== null) outer.add(member)
    })
    return result
  } finally {
    current = outer
    own.end()
  }
}

/** Takes the tensors in `value` out of their scopes: from now on the caller disposes them. Returns `value`. */
export function keep<T>(value: T): T {
  forEachOwned(value, (member) => member.owner?.remove(member))
  return value
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

function forEachOwned(value: unknown, visit: (member: Owned) => void): void {
  if (value instanceof Owned) visit(value)
  else if (typeof value === 'object' && value !== null) forEachInside(value, visit, new Set())
}

function forEachInside(container: object, visit: (member: Owned) => void, seen: Set<object>): void {
  if (seen.has(container)) return
  seen.add(container)
  for (const value of valuesOf(container)) {
    if (value instanceof Owned) visit(value)
    else if (typeof value === 'object' && value !== null) forEachInside(value, visit, seen)
  }
}

function valuesOf(container: object): Iterable<unknown> {
  if (Array.isArray(container) || container instanceof Set) return container
  if (container instanceof Map) return container.values()
  const prototype = Object.getPrototypeOf(container)
  return prototype === Object.prototype || prototype === null ? Object.values(container) : []
}

/** For ops: runs `body`, and frees what it made when it throws, also outside every scope. */
export function atomic<T>(body: () => T): T {
  return current === null ? scope(body) : body()
}
