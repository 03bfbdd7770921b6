import { TrilithonError } from '@trilithon/core'
import { Unpackr } from 'msgpackr'

/** `ROLLOUTS_INVALID`: what was being read, which field of it, and what is wrong with that. */
export function rolloutsInvalid(what: string, field: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('ROLLOUTS_INVALID', `${what}: ${field === '' ? '' : `${field} `}${reason}`, {
    path: field === '' ? what : field,
    hint: 'Run the orchestrator and the trainer in the same version; where they are, the file was changed or cut short.',
    details: { field },
    cause,
  })
}

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' })

/** One MessagePack value that takes all of `bytes`. Binary values refer to `bytes`. */
export function unpackWhole(bytes: Uint8Array, what: string): unknown {
  try {
    return unpackr.unpack(bytes)
  } catch (cause) {
    throw rolloutsInvalid(what, '', `is not MessagePack: ${(cause as Error).message}`, cause)
  }
}

const describe = (value: unknown): string =>
  value === undefined ? 'missing' : value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value

/**
 * A struct that was written as a list of its fields. A list that is shorter leaves its last fields out, elements behind the last known field are of a
 * newer writer and ignored. Every method reads one field and throws `ROLLOUTS_INVALID` that names it.
 */
export class FieldReader {
  readonly #fields: readonly unknown[]
  readonly #what: string
  readonly #path: string

  constructor(value: unknown, what: string, path: string) {
    if (!Array.isArray(value)) throw rolloutsInvalid(what, path, `is ${describe(value)}, not a list of fields`)
    this.#fields = value
    this.#what = what
    this.#path = path
  }

  fail(name: string, reason: string): TrilithonError {
    return rolloutsInvalid(this.#what, this.#path === '' ? name : `${this.#path}.${name}`, reason)
  }

  /** Neither left out nor null. */
  has(index: number): boolean {
    return this.#fields[index] !== undefined && this.#fields[index] !== null
  }

  raw(index: number): unknown {
    return this.#fields[index]
  }

  list(index: number, name: string): readonly unknown[] {
    const value = this.#fields[index]
    if (!Array.isArray(value)) throw this.fail(name, `is ${describe(value)}, not a list`)
    return value
  }

  text(index: number, name: string): string {
    const value = this.#fields[index]
    if (typeof value !== 'string') throw this.fail(name, `is ${describe(value)}, not a text`)
    return value
  }

  number(index: number, name: string): number {
    const value = this.#fields[index]
    if (typeof value !== 'number') throw this.fail(name, `is ${describe(value)}, not a number`)
    return value
  }

  integer(index: number, name: string): number {
    const value = this.#fields[index]
    if (!isCount(value)) throw this.fail(name, `is ${value}, not a count`)
    return value
  }

  texts(index: number, name: string): string[] {
    return this.list(index, name).map((value, at) => {
      if (typeof value !== 'string') throw this.fail(`${name}[${at}]`, `is ${describe(value)}, not a text`)
      return value
    })
  }

  counts(index: number, name: string): number[] {
    return this.list(index, name).map((value, at) => {
      if (!isCount(value)) throw this.fail(`${name}[${at}]`, `is ${value}, not a count`)
      return value
    })
  }

  /** Integers of 32 bits, `length` of them where that is given. */
  integers(index: number, name: string, length?: number): Uint32Array {
    const list = this.#sized(index, name, length)
    const result = new Uint32Array(list.length)
    for (let at = 0; at < list.length; at++) {
      const value = list[at]
      if (typeof value !== 'number' || value >>> 0 !== value)
        throw this.fail(`${name}[${at}]`, `is ${value}, not an unsigned 32-bit integer`)
      result[at] = value
    }
    return result
  }

  numbers(index: number, name: string, length: number): number[] {
    return this.#sized(index, name, length).map((value, at) => {
      if (typeof value !== 'number') throw this.fail(`${name}[${at}]`, `is ${describe(value)}, not a number`)
      return value
    })
  }

  /** Numbers, rounded to float32. */
  floats(index: number, name: string, length?: number): Float32Array {
    const list = this.#sized(index, name, length)
    const result = new Float32Array(list.length)
    for (let at = 0; at < list.length; at++) {
      const value = list[at]
      if (typeof value !== 'number') throw this.fail(`${name}[${at}]`, `is ${describe(value)}, not a number`)
      result[at] = value
    }
    return result
  }

  booleans(index: number, name: string, length?: number): Uint8Array {
    const list = this.#sized(index, name, length)
    const result = new Uint8Array(list.length)
    for (let at = 0; at < list.length; at++) {
      const value = list[at]
      if (typeof value !== 'boolean') throw this.fail(`${name}[${at}]`, `is ${describe(value)}, not a boolean`)
      if (value) result[at] = 1
    }
    return result
  }

  /** Binary, by reference. */
  binary(index: number, name: string): Uint8Array {
    const value = this.#fields[index]
    if (!(value instanceof Uint8Array)) throw this.fail(name, `is ${describe(value)}, not binary`)
    // The library gives a Buffer; what leaves this package is what its types say.
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  }

  /** `length` little-endian integers of 32 bits out of binary; `missing` for each where the field was left out. */
  words(index: number, name: string, length: number, missing: number): Uint32Array {
    if (!this.has(index)) return new Uint32Array(length).fill(missing)
    const bytes = this.binary(index, name)
    if (bytes.length !== length * 4) throw this.fail(name, `has ${bytes.length} bytes for ${length} tokens of 4`)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return Uint32Array.from({ length }, (_, at) => view.getUint32(at * 4, true))
  }

  #sized(index: number, name: string, length: number | undefined): readonly unknown[] {
    const list = this.list(index, name)
    if (length !== undefined && list.length !== length) throw this.fail(name, `has ${list.length} entries for ${length} tokens`)
    return list
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
