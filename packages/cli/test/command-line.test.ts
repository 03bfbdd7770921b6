import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommandLine } from '../src/run-command-line.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-cli-'))
  writeFileSync(
    join(folder, 'rl.toml'),
    'max_steps = 5\n[trainer]\n[orchestrator]\n[orchestrator.renderer]\nname = "default"\n[inference]\n[model]\nname = "nowhere"\n',
  )
  mkdirSync(join(folder, 'model'))
  writeFileSync(join(folder, 'model', 'config.json'), '{}')
  writeFileSync(join(folder, 'bad.toml'), 'max_step = 5\n[trainer.optim]\nlr = "x"\n[orchestrator]\n')
})
afterAll(() => rmSync(folder, { recursive: true }))

async function run(argv: readonly string[], terminal = false) {
  const written = { out: '', err: '' }
  const output = (key: 'out' | 'err') => ({
    isTTY: terminal,
    write: (text: string) => {
      written[key] += text
    },
  })
  const status = await runCommandLine(argv, { workingDirectory: folder, environment: {}, stdout: output('out'), stderr: output('err') })
  return { status, ...written }
}

describe('a role', () => {
  it('with --dry-run writes the resolved configuration, reports and ends with 0', async () => {
    const { status, out, err } = await run(['rl', '@', 'rl.toml', '--dry-run', '--output-dir', 'out'])
    expect([status, err]).toEqual([0, ''])
    expect(out).toContain('@trilithon/builtin/sticky-router')
    expect(out).toContain('MODEL_NOT_FOUND')
    expect(out).toContain('out/configs/orchestrator.toml')
    expect(readFileSync(join(folder, 'out/configs/trainer.toml'), 'utf8')).toContain('max_steps = 5')
  })

  it('gives the same as JSON', async () => {
    const { status, out } = await run(['rl', '@', 'rl.toml', '--dry-run', '--json', '--output-dir', 'out'])
    const report = JSON.parse(out)
    expect(status).toBe(0)
    expect(report.roles).toContainEqual({ name: 'trainer', built: true })
    expect(report.plugins.map(({ seam }: { seam: string }) => seam)).toContain('router')
    expect(report.unavailable).toMatchObject([{ code: 'MODEL_NOT_FOUND', path: 'trainer.model.name', source: 'rl.toml:8' }])
    expect(report.written).toEqual(['out/configs/trainer.toml', 'out/configs/orchestrator.toml', 'out/configs/inference.toml'])
  })

  it('without it says what a start lacks, and starts nothing', async () => {
    const { status, out, err } = await run(['rl', '@', 'rl.toml', '--output-dir', 'unstarted'])
    expect([status, out]).toEqual([2, ''])
    expect(err).toContain('MODEL_NOT_FOUND  rl.toml:8')
    expect(existsSync(join(folder, 'unstarted'))).toBe(false)
  })

  it('without it also names every key that is not available here, each with its place', async () => {
    const { status, err } = await run([
      'rl',
      '@',
      'rl.toml',
      '--trainer.model.cp',
      '2',
      '--deployment.num-train-gpus',
      '2',
      '--trainer.memory-profiler-path',
      'x',
      '--model.name',
      'model',
    ])
    expect(status).toBe(3)
    expect(err).toContain(
      'FEATURE_UNAVAILABLE  --trainer.model.cp\n  `trainer.model.cp` = 2: it belongs to @trilithon/cp, which is not built yet',
    )
    expect(err).toContain('FEATURE_UNAVAILABLE  --trainer.memory-profiler-path')
    // What only a real start finds is told with it.
    expect(err).toContain('FEATURE_UNAVAILABLE  deployment.num_train_gpus')
    expect(err).toContain('3 problems found')
  })

  it('reports all problems with places and ends with 2, without a stack', async () => {
    const { status, err } = await run(['rl', '@', 'bad.toml', '--trainer.model.nam', 'x'])
    expect(status).toBe(2)
    expect(err).toContain('CONFIG_KEY_UNKNOWN  bad.toml:1')
    expect(err).toContain('CONFIG_VALUE_INVALID  bad.toml:3')
    expect(err).toContain('USAGE_INVALID  --trainer.model.nam')
    expect(err).not.toMatch(/\n\s+at /)
    expect((await run(['rl', '@', 'bad.toml', '--verbose'])).err).toMatch(/\n\s+at /)
  })

  it('reports them as JSON too', async () => {
    const { status, out, err } = await run(['rl', '@', 'bad.toml', '--json'])
    expect([status, err]).toEqual([2, ''])
    expect(
      JSON.parse(out)
        .error.problems.map(({ code }: { code: string }) => code)
        .sort(),
    ).toEqual(['CONFIG_KEY_UNKNOWN', 'CONFIG_VALUE_INVALID'])
  })

  it('explains itself', async () => {
    for (const flag of ['--help', '-h']) {
      const { status, out } = await run(['orchestrator', flag])
      expect(status).toBe(0)
      expect(out).toContain('--batch-size')
      expect(out).toContain('--dry-run')
    }
  })
})

describe('the other commands', () => {
  it('list plugins, by seam and as JSON', async () => {
    expect((await run(['plugins'])).out).toMatch(/router +@trilithon\/builtin\/sticky-router +built-in +orchestrator\.router type "sticky"/)
    const { status, out } = await run(['plugins', '--seam', 'kv-store', '--json'])
    expect(status).toBe(0)
    expect(JSON.parse(out).plugins).toMatchObject([
      { seam: 'kv-store', name: '@trilithon/builtin/memory-kv-store', type: 'native', origin: 'built-in' },
    ])
    expect(await run(['plugins', '--seam', 'soul'])).toMatchObject({ status: 2, out: '' })
  })

  it('diagnose the machine with a reason for what is missing', async () => {
    const { status, out } = await run(['doctor', '--json'])
    expect(status).toBe(0)
    const { findings } = JSON.parse(out) as { findings: { name: string; available: boolean; detail: string }[] }
    expect(findings.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'Node.js',
        'C++ compiler',
        'CMake',
        'native addon',
        'instruction sets',
        'kernels in use',
        'CUDA compiler',
        'CUDA device',
      ]),
    )
    for (const { detail } of findings) expect(detail).not.toBe('')
  })

  it('print JSON Schema', async () => {
    const { status, out } = await run(['schema', 'sft'])
    expect(status).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' })
    expect((await run(['schema', 'nothing'])).status).toBe(2)
  })
})

describe('usage', () => {
  it.each([
    [[], 2, 'Usage: trilithon'],
    [['rll'], 2, 'Did you mean'],
    [['plugins', '--nonsense'], 2, 'unknown option'],
    [['rl', 'file.toml'], 2, 'Files come after `@ `'],
    [['rl', '@', 'missing.toml'], 2, 'there is no such file'],
  ])('%j ends with %i', async (argv, expected, text) => {
    const { status, err } = await run(argv)
    expect(status).toBe(expected)
    expect(err).toContain(text)
    expect(err).not.toMatch(/\n\s+at /)
  })

  it('has help everywhere', async () => {
    expect((await run(['--help'])).out).toContain('Exit status')
    for (const command of ['rl', 'sft', 'inference', 'trainer', 'orchestrator', 'env-server', 'plugins', 'doctor', 'schema']) {
      expect(await run([command, '--help'])).toMatchObject({ status: 0, err: '' })
    }
  })

  it('colours on a terminal only', async () => {
    const start = '\u001b['
    expect((await run(['rl', '@', 'rl.toml', '--dry-run'])).out).not.toContain(start)
    expect((await run(['rl', '@', 'rl.toml', '--dry-run'], true)).out).toContain(start)
    expect((await run(['rl', '@', 'bad.toml'], true)).err).toContain(start)
  })
})
