import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** What importing a module did, each in words that follow "the import". */
export interface ImportReport {
  readonly effects: readonly string[]
  /** `name` of the default export, where it is an object that has one. */
  readonly defaultName?: string | undefined
}

const probe = fileURLToPath(new URL('../probe/import-probe.mjs', import.meta.url))
const importPatienceMs = 15_000
const exitPatienceMs = 2_000
const reports = new Map<string, Promise<ImportReport>>()

/** Imports a module in a process of its own, once per module however often it is asked. TypeScript is imported as it is. */
export function probeImport(path: string): Promise<ImportReport> {
  const known = reports.get(path)
  if (known !== undefined) return known
  const report = runProbe(path)
  reports.set(path, report)
  return report
}

function runProbe(path: string): Promise<ImportReport> {
  const isTypeScript = /\.m?ts$/.test(path)
  // Where the module is a source, so are the packages of the workspace that it imports.
  const conditions = isTypeScript ? ['--conditions=trilithon-src'] : []
  const child = spawn(process.execPath, ['--no-warnings', ...conditions, probe, pathToFileURL(path).href, isTypeScript ? viteUrl() : ''], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  const texts = ['', '', '', '']
  let isLate = false
  const killAfter = (ms: number) =>
    setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, ms)
  let timer = killAfter(importPatienceMs)
  for (const fd of [1, 2, 3])
    child.stdio[fd]?.on('data', (chunk: Buffer) => {
      texts[fd] += chunk.toString()
      if (fd !== 3) return
      // The report is written in one piece, after which nothing should keep the process.
      clearTimeout(timer)
      timer = killAfter(exitPatienceMs)
    })

  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, signal) => {
      clearTimeout(timer)
      const [, output = '', errors = '', report = ''] = texts
      const { effects, defaultName }: ImportReport = report === '' ? { effects: [] } : JSON.parse(report)
      const printed = (output + errors).trim()
      resolve({
        defaultName,
        effects: [
          ...effects,
          ...(printed === '' ? [] : [`prints: ${printed.split('\n', 1)[0]}`]),
          ...(isLate ? [report === '' ? `takes more than ${importPatienceMs} ms` : 'keeps the process alive'] : []),
          ...(report === '' && !isLate ? [`ends the process (${signal ?? `status ${status}`})`] : []),
        ],
      })
    })
  })
}

/** vite as vitest itself finds it, so that a plugin's package needs no dependency on it. */
function viteUrl(): string {
  const vitest = createRequire(import.meta.url).resolve('vitest/package.json')
  return pathToFileURL(createRequire(vitest).resolve('vite')).href
}
