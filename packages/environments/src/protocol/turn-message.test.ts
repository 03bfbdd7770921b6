import type { Turn } from '@trilithon/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pack, unpack } from './pack.ts'
import { decodeTurn, encodeTurn, type TurnMessage } from './turn-message.ts'

const id = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const completion = fc.array(fc.tuple(id, fc.float({ noNaN: true, max: 0 }), id, id), { minLength: 1, maxLength: 6 })

function turnOf(promptIds: number[], tokens: [number, number, number, number][], experts: boolean): Turn {
  const rows = promptIds.length + tokens.length - 1
  return {
    promptIds: Uint32Array.from(promptIds),
    completionIds: Uint32Array.from(tokens, ([token]) => token),
    logprobs: Float32Array.from(tokens, ([, logprob]) => logprob),
    versions: Uint32Array.from(tokens, ([, , version]) => version),
    contextVersionsMin: Uint32Array.from(tokens, ([, , , version]) => version),
    temperature: 0.7,
    finishReason: 'stop',
    ...(experts ? { routedExperts: { data: new Uint8Array(rows * 6).fill(rows), shape: [rows, 3, 2], dtype: 'uint8' as const } } : {}),
  }
}

test('turns arrive as they were sent, and of a prompt that extends the turn before only what is new travels', () => {
  const steps = fc.array(
    fc.record({ tokens: completion, next: fc.array(id, { maxLength: 5 }), breaks: fc.boolean(), experts: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  fc.assert(
    fc.property(steps, (list) => {
      const sent: Turn[] = []
      const received: Turn[] = []
      for (const { tokens, next, breaks, experts } of list) {
        const before = sent.at(-1)
        const history = before === undefined || breaks ? [] : [...before.promptIds, ...before.completionIds]
        const turn = turnOf([...history, ...next], tokens, experts)
        const message = encodeTurn(turn, before, 0, 0)
        if (before !== undefined && !breaks) expect(message.prompt_ids).toHaveLength(next.length * 4)
        received.push(decodeTurn(unpack(pack(message)) as TurnMessage, received.at(-1)))
        sent.push(turn)
      }
      // A Buffer is a Uint8Array, and told apart by the comparison.
      const plain = (turn: Turn) => ({
        ...turn,
        ...(turn.routedExperts === undefined ? {} : { routedExperts: { ...turn.routedExperts, data: [...turn.routedExperts.data] } }),
      })
      expect(received.map(plain)).toEqual(sent.map(plain))
    }),
  )
})

test('expert rows are a view of the frame and are never copied', () => {
  const frame = pack(encodeTurn(turnOf([1, 2], [[3, -1, 0, 0]], true), undefined, 0, 0))
  const turn = decodeTurn(unpack(frame) as TurnMessage, undefined)
  expect(turn.routedExperts?.data.buffer).toBe(frame.buffer)
  expect(turn.completionIds.buffer).not.toBe(frame.buffer)
})

test('a turn that extends what is not there, or whose arrays differ in length, is refused', () => {
  const first = turnOf([1, 2], [[3, -1, 0, 0]], false)
  const second = turnOf([1, 2, 3, 4], [[5, -1, 0, 0]], false)
  expect(() => decodeTurn(encodeTurn(second, first, 0, 0), undefined)).toThrow('extends 3 ids')
  expect(() => decodeTurn({ ...encodeTurn(first, undefined, 0, 0), versions: new Uint8Array(8) }, undefined)).toThrow('other lengths')
  expect(() => decodeTurn({ ...encodeTurn(first, undefined, 0, 0), completion_ids: new Uint8Array(3) }, undefined)).toThrow('no words')
})
