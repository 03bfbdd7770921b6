import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { isAlive, thisProcess } from './process-identity.ts'

const startTicks = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')[19] as string

test('this process lives, one of the same number that began at another time does not', () => {
  const self = thisProcess()
  expect(self.pid).toBe(process.pid)
  expect(self.host).toMatch(/^[A-Za-z0-9.]+$/)
  expect(isAlive(self)).toBe(true)
  expect(isAlive({ ...self, started: `${Number(self.started) + 1}` })).toBe(false)
  expect(isAlive({ ...self, host: `${self.host}.x` })).toBeNull()
})

test('without a start the number alone tells', () => {
  expect(isAlive({ ...thisProcess(), started: '' })).toBe(true)
  expect(isAlive({ ...thisProcess(), pid: 2 ** 22 + 1, started: '' })).toBe(false)
})

test('a process that was killed does not live, nor while its parent has not taken note of it', async () => {
  const child = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 61'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  // Its parent never asks for it, so it stays a zombie.
  const pid = Number(String(line))
  const grandchild = { ...thisProcess(), pid, started: startTicks(pid) }
  expect(isAlive(grandchild)).toBe(true)
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => isAlive(grandchild)).toBe(false)
  expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /)
  child.kill('SIGKILL')
  await once(child, 'exit')
})
