import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BlockManager, type BlockName, blockName } from './block-manager.ts'

const nameOf = (label: string): BlockName => blockName('salt', '', Buffer.from(label.padEnd(32, '.')))

describe('BlockManager', () => {
  test('blank pages go first, then the least recently used content; held pages never', () => {
    const blocks = new BlockManager(3)
    const evicted: string[] = []
    blocks.onEvict = (_page, name) => evicted.push(name.text.replaceAll('.', ''))
    const [a, b, c] = [blocks.allocate(), blocks.allocate(), blocks.allocate()]
    expect(blocks.allocate()).toBe(-1)
    blocks.register(a, nameOf('a'))
    blocks.register(b, nameOf('b'))
    // A request gives its last block back first, so its beginning is kept longest.
    blocks.release(c)
    blocks.release(b)
    blocks.release(a)
    expect([blocks.free, blocks.cached, blocks.held]).toEqual([3, 2, 0])
    expect(blocks.allocate()).toBe(c)
    blocks.acquire(blocks.find(nameOf('b').text) as number)
    blocks.release(b)
    expect([blocks.allocate(), blocks.allocate(), blocks.allocate()]).toEqual([a, b, -1])
    expect(evicted).toEqual(['a', 'b'])
    expect(blocks.find(nameOf('a').text)).toBeUndefined()
  })

  test('content is known once: the second page of it stays without a name', () => {
    const blocks = new BlockManager(2)
    const [a, b] = [blocks.allocate(), blocks.allocate()]
    expect([blocks.register(a, nameOf('x')), blocks.register(b, nameOf('x')), blocks.register(a, nameOf('x'))]).toEqual([true, false, true])
    blocks.release(b)
    expect([blocks.free, blocks.cached]).toEqual([1, 0])
  })

  test('a block that two versions of the weights computed has both', () => {
    const blocks = new BlockManager(1)
    const page = blocks.allocate()
    blocks.touch(page, 9, true)
    blocks.touch(page, 4, true)
    blocks.touch(page, 5, false)
    expect([blocks.versionsOf(page), blocks.oldestVersion(page)]).toEqual([{ min: 4, max: 5 }, 4])
  })

  test('a page given back twice is a fault of ours', () => {
    const blocks = new BlockManager(1)
    blocks.release(blocks.allocate())
    expect(() => blocks.release(0)).toThrowError(expect.objectContaining({ code: 'INVARIANT_BROKEN' }))
  })

  test('whatever is called in whatever order, every page is in one state and a name leads to its page (a plain model agrees)', () => {
    const step = fc.record({
      action: fc.constantFrom('allocate', 'acquire', 'release', 'register', 'forget', 'clear'),
      pick: fc.nat(9),
      label: fc.nat(5),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const blocks = new BlockManager(5)
        const holds: number[] = []
        const names = new Map<string, number>()
        blocks.onEvict = (page, name) => {
          expect(names.get(name.text)).toBe(page)
          names.delete(name.text)
        }
        for (const { action, pick, label } of steps) {
          const page = holds[pick % Math.max(1, holds.length)]
          const name = nameOf(String(label))
          if (action === 'allocate') {
            const fresh = blocks.allocate()
            expect(fresh === -1).toBe(new Set(holds).size === 5)
            if (fresh >= 0) {
              expect(holds).not.toContain(fresh)
              expect([...names.values()]).not.toContain(fresh)
              holds.push(fresh)
            }
          } else if (action === 'acquire') {
            const found = blocks.find(name.text)
            expect(found).toBe(names.get(name.text))
            if (found === undefined) continue
            blocks.acquire(found)
            holds.push(found)
          } else if (action === 'release' && page !== undefined) {
            blocks.release(page)
            holds.splice(holds.indexOf(page), 1)
          } else if (action === 'register' && page !== undefined && blocks.nameOf(page) === null) {
            if (blocks.register(page, name)) names.set(name.text, page)
          } else if (action === 'forget' && page !== undefined) {
            const old = blocks.nameOf(page)
            if (old !== null) names.delete(old.text)
            blocks.forget(page)
          } else if (action === 'clear') {
            blocks.clear()
            names.clear()
          }
          expect(blocks.faults()).toEqual([])
          expect(blocks.held).toBe(new Set(holds).size)
        }
      }),
    )
  })
})
