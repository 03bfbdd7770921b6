/**
 * Random runs of the core: requests with shared and different prompts, salts and priorities come and go, pages run out, pieces are of any size, the cache is
 * reset, blocks leave and come back. Whatever is answered to whoever has the bits of the trainer's packed forward.
 */

import { kvElementsPerToken } from '@trilithon/models'
import { scope } from '@trilithon/tensor'
import { someIds, tinyFamilies } from '@trilithon/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EngineCore } from '../src/engine/engine-core.ts'
import { type CoreReport, type EvictedBlock, type SlotLayout, tokenWords } from '../src/engine/engine-messages.ts'
import { coreOf, submit } from './core.ts'
import { bitsOf, requestOf } from './running.ts'
import { packedScores, tinyModel } from './tiny-models.ts'

const request = fc.record({
  /** Requests of one family of prompts have a beginning in common. */
  family: fc.nat(2),
  length: fc.integer({ min: 1, max: 30 }),
  own: fc.nat(5),
  salt: fc.constantFrom('a', 'b'),
  priority: fc.nat(2),
  maxTokens: fc.integer({ min: 1, max: 25 }),
  temperature: fc.constantFrom(0.5, 1, 1.5),
  stepsBefore: fc.nat(5),
  abortAfter: fc.option(fc.nat(12), { freq: 4 }),
  isReset: fc.integer({ min: 0, max: 9 }).map((value) => value === 0),
})
const run = fc.record({
  family: fc.constantFrom(...tinyFamilies),
  blocks: fc.integer({ min: 15, max: 60 }),
  prefillTokens: fc.integer({ min: 1, max: 40 }),
  maxRunning: fc.integer({ min: 1, max: 12 }),
  hasStore: fc.boolean(),
  requests: fc.array(request, { minLength: 1, maxLength: 25 }),
})

/** A store as the other thread has it: at once, and without a limit. */
class PlainStore {
  readonly #kept = new Map<string, { readonly bytes: Uint8Array; readonly block: EvictedBlock }>()
  readonly #core: () => EngineCore
  readonly #layout: SlotLayout

  constructor(core: () => EngineCore, layout: SlotLayout) {
    this.#core = core
    this.#layout = layout
  }

  take({ evictions, lookups }: CoreReport): void {
    const { leaving, coming, slotBytes, buffer } = this.#layout
    const slot = (index: number) => new Uint8Array(buffer, index * slotBytes, slotBytes)
    for (const block of evictions) {
      this.#kept.set(block.name.text, { bytes: slot(block.slot).slice(), block })
      this.#core().slotsWritten([block.slot])
    }
    for (const { handle, names } of lookups) {
      const found = names.slice(0, coming).map(({ text }) => this.#kept.get(text))
      const missing = found.indexOf(undefined)
      const blocks = (missing < 0 ? found : found.slice(0, missing)).map((entry, index) => {
        const { bytes, block } = entry as NonNullable<typeof entry>
        slot(leaving + index).set(bytes)
        return { slot: leaving + index, versions: block.versions, experts: block.experts }
      })
      this.#core().takeFetched({ handle, blocks, isPartial: missing < 0 && names.length > coming })
    }
  }
}

test('whatever happens to requests, the bits are those of the packed forward', { timeout: 60_000 }, () => {
  const seen = { preemptions: 0, hits: 0, stored: 0, aborted: 0 }
  const check = () =>
    fc.assert(
      fc.property(run, ({ family, blocks, prefillTokens, maxRunning, hasStore, requests }) => {
        const model = tinyModel(family, 1)
        const slotBytes = kvElementsPerToken(model.config) * 4 * 4
        const slots: SlotLayout = { buffer: new SharedArrayBuffer(12 * slotBytes), slotBytes, leaving: 8, coming: 4 }
        const core = coreOf(family, { blocks, prefillTokens, maxRunning, maxModelLen: Math.min(96, blocks * 4), slots, hasStore })
        const store = new PlainStore(() => core, slots)
        const answers = requests.map(() => ({ tokens: [] as number[], logprobs: [] as number[], routes: null as Uint8Array | null }))
        const take = () => {
          for (let report = core.take(); report !== null; report = core.take()) {
            const floats = new Float32Array(report.tokens.buffer)
            for (let at = 0; at < report.tokens.length; at += tokenWords) {
              const answer = answers[report.tokens[at] as number]
              answer?.tokens.push(report.tokens[at + 1] as number)
              answer?.logprobs.push(floats[at + 2] as number)
            }
            for (const { handle, routedExperts, reason } of report.ends) {
              const answer = answers[handle]
              if (answer !== undefined) answer.routes = routedExperts?.data ?? null
              if (reason === 'abort') seen.aborted++
              else expect(reason).toBe('length')
            }
            for (const { storedTokens } of report.prompts) seen.stored += storedTokens
            store.take(report)
          }
        }
        const prompts = requests.map(({ family: shared, length, own }) => [...someIds(length, 61, shared), own])
        for (const [handle, { salt, priority, maxTokens, temperature, stepsBefore, isReset }] of requests.entries()) {
          for (let step = 0; step < stepsBefore; step++) {
            core.step()
            take()
            for (const [other, { abortAfter }] of requests.entries())
              if (abortAfter !== null && (answers[other]?.tokens.length ?? 0) >= abortAfter && other < handle) core.abort(other)
          }
          if (isReset) core.resetPrefixCache()
          const sampling = { maxTokens, temperature, seed: BigInt(handle) }
          submit(core, handle, requestOf(prompts[handle] ?? [], { salt, priority, routedExpertsFrom: 0, sampling }))
        }
        for (let steps = 0; ; steps++) {
          const isBusy = core.step()
          take()
          expect(core.faults()).toEqual([])
          if (!isBusy && core.stats.get('waiting') + core.stats.get('running') === 0) break
          expect(steps).toBeLessThan(3000)
        }
        seen.preemptions += core.stats.get('preemptions')
        seen.hits += core.stats.get('prefixHits')
        for (const [handle, { tokens, logprobs, routes }] of answers.entries()) {
          const prompt = prompts[handle] ?? []
          if (tokens.length === 0) continue
          const expected = packedScores(model, [...prompt, ...tokens], requests[handle]?.temperature)
          expect(bitsOf(logprobs)).toEqual(bitsOf(expected.logprobs.slice(prompt.length - 1)))
          // Also of one that was aborted while it waited to be computed again.
          if (routes !== null) expect([...routes]).toEqual([...(expected.routes?.data.subarray(0, routes.length) ?? [])])
        }
        expect(core.slotsInFlight).toBe(0)
        core.dispose()
        scope(() => model.dispose())
      }),
      { numRuns: 50 },
    )
  const unseen = () => Object.entries(seen).filter(([, count]) => count === 0)
  // What is rare may not happen in so few runs.
  for (let round = 0; round === 0 || (unseen().length > 0 && round < 10); round++) check()
  expect(unseen()).toEqual([])
})
