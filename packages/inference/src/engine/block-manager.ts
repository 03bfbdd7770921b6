import { invariant, type KVKey, type VersionRange } from '@trilithon/core'

/** What a full block is known by: the hash says everything, the other fields are for the store. */
export interface BlockName {
  readonly salt: string
  readonly tenant: string
  /** 32 bytes. */
  readonly hash: Uint8Array
  /** The hash as text, for maps. */
  readonly text: string
}

export function blockName(salt: string, tenant: string, hash: Uint8Array): BlockName {
  return { salt, tenant, hash, text: Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('latin1') }
}

export const keyOf = ({ salt, tenant, hash }: BlockName, profile: string, format: string): KVKey => ({
  salt,
  profile,
  format,
  tenant,
  hash,
})

/**
 * Who holds which page. A page is *blank* (free, nothing worth keeping), *held* (by one or more requests), or *cached*: held by nobody, its content
 * known by name, the least recently used given away first when there is no blank one.
 *
 * Names belong to full blocks only. Every operation takes constant time.
 */
export class BlockManager {
  readonly pages: number
  /** Called for a cached page before it is given away. */
  onEvict: (page: number, name: BlockName) => void = () => undefined
  readonly #references: Int32Array
  readonly #names: (BlockName | null)[]
  readonly #oldest: Float64Array
  readonly #newest: Float64Array
  readonly #index = new Map<string, number>()
  /** Stack of blank pages. */
  readonly #blank: Int32Array
  #blankCount: number
  /** Ring of cached pages by last use; the entry behind the last page is its anchor. */
  readonly #next: Int32Array
  readonly #previous: Int32Array
  #cached = 0

  constructor(pages: number) {
    this.pages = pages
    this.#references = new Int32Array(pages)
    this.#names = new Array<BlockName | null>(pages).fill(null)
    this.#oldest = new Float64Array(pages)
    this.#newest = new Float64Array(pages)
    this.#blank = Int32Array.from({ length: pages }, (_, index) => pages - 1 - index)
    this.#blankCount = pages
    this.#next = new Int32Array(pages + 1).fill(-1)
    this.#previous = new Int32Array(pages + 1).fill(-1)
    this.#next[pages] = pages
    this.#previous[pages] = pages
  }

  /** Pages that nobody holds. */
  get free(): number {
    return this.#blankCount + this.#cached
  }

  get held(): number {
    return this.pages - this.free
  }

  get cached(): number {
    return this.#cached
  }

  /** The page with this content. */
  find(text: string): number | undefined {
    return this.#index.get(text)
  }

  nameOf(page: number): BlockName | null {
    return this.#names[page] as BlockName | null
  }

  isHeld(page: number): boolean {
    return (this.#references[page] as number) > 0
  }

  /** A page for new content, held once; -1 where all are held. */
  allocate(): number {
    let page: number
    if (this.#blankCount > 0) page = this.#blank[--this.#blankCount] as number
    else if (this.#cached > 0) {
      page = this.#next[this.pages] as number
      const name = this.#names[page]
      invariant(name != null, 'a cached page has a name')
      this.onEvict(page, name)
      this.#unlink(page)
      this.#drop(page)
    } else return -1
    this.#references[page] = 1
    return page
  }

  /** One more holder of a page that `find` gave. */
  acquire(page: number): void {
    if (this.#references[page] === 0) this.#unlink(page)
    this.#references[page] = (this.#references[page] as number) + 1
  }

  /** One holder less. Release the last block of a request first: then beginnings, which others share, are kept longest. */
  release(page: number): void {
    const left = (this.#references[page] as number) - 1
    invariant(left >= 0, `page ${page} was released more often than it was held`)
    this.#references[page] = left
    if (left > 0) return
    if (this.#names[page] === null) this.#blank[this.#blankCount++] = page
    else this.#link(page)
  }

  /** Makes the content of a held page known. False where another page has the same content already. */
  register(page: number, name: BlockName): boolean {
    if (this.#index.has(name.text)) return this.#index.get(name.text) === page
    invariant(this.isHeld(page) && this.#names[page] === null, `page ${page} has no content of its own to be named`)
    this.#index.set(name.text, page)
    this.#names[page] = name
    return true
  }

  /** Takes the name of a page away: nobody finds it any more. */
  forget(page: number): void {
    if (this.#names[page] === null) return
    this.#drop(page)
    if (this.isHeld(page)) return
    this.#unlink(page)
    this.#blank[this.#blankCount++] = page
  }

  /** Forgets every name. */
  clear(): void {
    for (const page of [...this.#index.values()]) this.forget(page)
  }

  /** Notes that weights of `version` write into the page: from its first token on (`isFresh`), or after others did. */
  touch(page: number, version: number, isFresh: boolean): void {
    if (isFresh) {
      this.#oldest[page] = version
      this.#newest[page] = version
      return
    }
    if (version < (this.#oldest[page] as number)) this.#oldest[page] = version
    if (version > (this.#newest[page] as number)) this.#newest[page] = version
  }

  setVersions(page: number, { min, max }: VersionRange): void {
    this.#oldest[page] = min
    this.#newest[page] = max
  }

  /** Oldest weights that computed any of the page. */
  oldestVersion(page: number): number {
    return this.#oldest[page] as number
  }

  versionsOf(page: number): VersionRange {
    return { min: this.#oldest[page] as number, max: this.#newest[page] as number }
  }

  /** Sentences that are false, for tests: every page is in exactly one state, and the lists agree with the counts. */
  faults(): string[] {
    const faults: string[] = []
    const seen = new Int32Array(this.pages)
    for (let index = 0; index < this.#blankCount; index++) {
      const page = this.#blank[index] as number
      seen[page] = (seen[page] as number) + 1
      if (this.#names[page] !== null) faults.push(`blank page ${page} has a name`)
    }
    let cached = 0
    for (let page = this.#next[this.pages] as number; page !== this.pages; page = this.#next[page] as number) {
      seen[page] = (seen[page] as number) + 1
      if (this.#names[page] === null) faults.push(`cached page ${page} has no name`)
      if (++cached > this.pages) break
    }
    if (cached !== this.#cached) faults.push(`${cached} pages are cached, ${this.#cached} are counted`)
    for (let page = 0; page < this.pages; page++)
      if (seen[page] !== (this.isHeld(page) ? 0 : 1))
        faults.push(`page ${page} is listed ${seen[page]} times and held ${this.#references[page]} times`)
    for (const [text, page] of this.#index)
      if (this.#names[page]?.text !== text) faults.push(`the index leads to page ${page}, which has another name`)
    if (this.#names.filter((name) => name !== null).length !== this.#index.size) faults.push('a name is not in the index')
    return faults
  }

  #drop(page: number): void {
    const name = this.#names[page]
    if (name != null) this.#index.delete(name.text)
    this.#names[page] = null
  }

  /** At the end of the ring: most recently used. */
  #link(page: number): void {
    const last = this.#previous[this.pages] as number
    this.#next[last] = page
    this.#previous[page] = last
    this.#next[page] = this.pages
    this.#previous[this.pages] = page
    this.#cached++
  }

  #unlink(page: number): void {
    const [before, after] = [this.#previous[page] as number, this.#next[page] as number]
    this.#next[before] = after
    this.#previous[after] = before
    this.#cached--
  }
}
