import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'vitest'
import { compose } from './compose/compose.ts'

const base = '/work/shared/prime-rl-0.6.0-configs'
const files: string[] = []
const walk = (d: string) => {
  for (const f of readdirSync(d)) {
    const p = join(d, f)
    if (statSync(p).isDirectory()) walk(p)
    else files.push(p)
  }
}
walk(base)
function rootsOf(f: string): [string, string[]] {
  const r = relative(base, f)
  if (r.includes('slurm_sft')) return ['sft', [f.replace('slurm_sft', 'sft'), f]]
  if (r.includes('slurm_rl')) return ['rl', [f.replace('slurm_rl', 'rl'), f]]
  if (r.endsWith('inference.toml') || r.endsWith('infer.toml')) return ['inference', [f]]
  if (r.endsWith('orchestrator.toml') || r.endsWith('orch.toml')) return ['orchestrator', [f]]
  if (r.endsWith('trainer.toml') || r.includes('debug/rl/train')) return ['trainer', [f]]
  if (/\/sft\.toml|reverse_text_sft|debug\/(moe\/)?sft\//.test(r) && !r.includes('training_modes')) return ['sft', [f]]
  return ['rl', [f]]
}
test('all', async () => {
  let ok = 0
  for (const f of files) {
    const [root, list] = rootsOf(f)
    try {
      const c = await compose({ root: root as never, argv: list.flatMap((x) => ['@', x]), workingDirectory: '/work/main', environment: {} })
      ok++
      for (const part of ['trainer', 'orchestrator', 'inference', 'sft', 'rl']) {
        const value = (c.resolved as any)[part]
        if (!value) continue
        writeFileSync('/tmp/w/r.json', JSON.stringify(value))
        try {
          const again = await compose({
            root: part as never,
            argv: ['@', '/tmp/w/r.json'],
            workingDirectory: '/work/main',
            environment: {},
          })
          const d = diff(value, (again.resolved as any)[part], part)
          if (d.length) console.log('ROUND', relative(base, f), d.slice(0, 6))
        } catch (e: any) {
          console.log('ROUND', relative(base, f), part)
          for (const p of e.problems?.length ? e.problems : [e]) console.log('   ', p.code, p.path, p.message)
          if (!e.code) console.log(e.stack)
        }
      }
      if (process.env.SHOW && f.includes(process.env.SHOW))
        console.log(
          f,
          JSON.stringify(c.resolved, null, 1),
          c.unavailable.map((u) => u.path + ' ' + u.reason),
          c.ignored.map((u) => u.path),
          c.notices,
        )
    } catch (e: any) {
      console.log(relative(base, f), root)
      for (const p of e.problems?.length ? e.problems : [e])
        console.log('   ', p.code, p.path, p.message, p.stack?.includes('INVARIANT') ? p.stack : '')
      if (!e.code) console.log(e.stack)
    }
  }
  console.log('OK', ok, files.length)
}, 60000)

function diff(a: any, b: any, path: string): string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return []
  if (typeof a === 'object' && typeof b === 'object' && a && b)
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((k) => diff(a[k], b[k], path + '.' + k))
  return [`${path}: ${JSON.stringify(a)} -> ${JSON.stringify(b)}`]
}
