/** An engine in a thread of its own, from the built package: the test target builds first. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { TestFolders } from './tiny-models.ts'

const folders = new TestFolders()
afterAll(() => folders.remove())

test('a thread that ends by itself is told to everyone; a stop ends a step that is under way within a second; nothing keeps the process alive', async () => {
  const script = fileURLToPath(new URL('./end-elsewhere.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, folders.model('qwen3', 1)])
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    output += data
  })
  const status = await new Promise((resolve) => child.on('close', resolve))
  expect([status, output]).toEqual([0, expect.stringMatching(/^ENGINE_FAILED error ENGINE_FAILED MODEL_NOT_FOUND \d+$/)])
  expect(Number(output.split(' ').at(-1))).toBeLessThan(1000)
})
