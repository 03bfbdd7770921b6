/** Runs the built packages (dist) in two other processes: the test target builds first. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { kvElementsPerToken } from '@trilithon/models'
import { tinyFamilies } from '@trilithon/testing'
import { afterAll, expect, test } from 'vitest'
import { TestFolders, tinyModel } from './tiny-models.ts'

const folders = new TestFolders()
afterAll(() => folders.remove())

const seed = Number(process.env.TRILITHON_TEST_SEED ?? Date.now() % 100_000)

interface Answer {
  readonly scenario: string
  readonly prompt: readonly number[]
  readonly tokens: readonly number[]
  readonly bits: readonly number[]
  readonly versions: readonly number[]
  readonly contextVersionsMin: readonly number[]
  readonly temperature: number
  readonly routes: string | null
}

function run(script: string, argument: string, input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url)), argument])
    let [output, errors] = ['', '']
    child.stdout.on('data', (data) => {
      output += data
    })
    child.stderr.on('data', (data) => {
      errors += data
    })
    child.on('close', (status) =>
      status === 0 ? resolve(output) : reject(new Error(`${script} ended with ${status} (seed ${seed}): ${errors}`)),
    )
    child.stdin.end(input)
  })
}

test.concurrent.for(tinyFamilies)(
  '%s: an engine process and a process of packed forwards agree bit for bit',
  { timeout: 60_000 },
  async (family) => {
    const own: [string, string] = [folders.model(family, 1), folders.model(family, 2)]
    const { config } = tinyModel(family, 1)
    const input = { folders: own, blockBytes: kvElementsPerToken(config) * 4 * 4, vocab: 61, seed }
    const answers: Answer[] = JSON.parse(await run('engine-elsewhere.mjs', JSON.stringify(input), ''))
    // A sequence of one version throughout has a packed forward; the one through an update has two, each for some of its tokens.
    const sequences = answers.map(({ prompt, tokens, temperature, contextVersionsMin }) => ({
      ids: [...prompt, ...tokens],
      temperature,
      model: Math.min(...contextVersionsMin),
    }))
    const packed: { bits: number[]; routes: string | null }[] = JSON.parse(
      await run('packed-elsewhere.mjs', '', JSON.stringify({ folders: own, sequences })),
    )
    let pure = 0
    for (const [index, answer] of answers.entries()) {
      const { scenario, prompt, tokens, versions, contextVersionsMin } = answer
      const reference = packed[index] as (typeof packed)[number]
      const served = Math.min(...contextVersionsMin)
      const skipped = scenario === 'from imported blocks' ? 1 : 0
      for (let token = skipped; token < tokens.length; token++) {
        if (versions[token] !== served || contextVersionsMin[token] !== served) continue
        pure++
        expect(answer.bits[token], `${scenario}, token ${token}, seed ${seed}`).toBe(reference.bits[prompt.length - 1 + token])
      }
      const isMixed = versions.some((version) => version !== served)
      if (!isMixed) expect(answer.routes, `${scenario}, seed ${seed}`).toBe(reference.routes?.slice(0, answer.routes?.length) ?? null)
      if (!isMixed && answer.routes !== null)
        expect(answer.routes.length * prompt.length).toBe(
          ((reference.routes?.length ?? 0) / (prompt.length + tokens.length)) * (prompt.length + tokens.length - 1) * prompt.length,
        )
    }
    const through = answers.find(({ scenario }) => scenario === 'through an update')
    expect(through?.versions.at(0)).toBe(0)
    expect(through?.versions.at(-1)).toBe(1)
    expect(new Set(through?.contextVersionsMin)).toEqual(new Set([0]))
    const old = answers.find(({ scenario }) => scenario === 'new weights, old salt')
    expect([new Set(old?.versions), new Set(old?.contextVersionsMin)]).toEqual([new Set([1]), new Set([0])])
    const fresh = answers.find(({ scenario }) => scenario === 'new weights, new salt')
    expect([new Set(fresh?.versions), new Set(fresh?.contextVersionsMin)]).toEqual([new Set([1]), new Set([1])])
    expect(pure).toBeGreaterThan(900)
  },
)
