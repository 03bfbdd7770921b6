import { afterEach, describe, expect, it } from 'vitest'
import type { Composition } from '../src/compose/composition.ts'
import { reportOf } from '../src/report/composition-report.ts'
import { renderReport } from '../src/report/render.ts'
import { Folder } from './compose-in-folder.ts'

let folder = new Folder()
afterEach(() => {
  folder.remove()
  folder = new Folder()
})

const report = (composition: Composition) => reportOf(composition, composition.unavailable, [])
const text = (composition: Composition) => renderReport(report(composition), { colors: false })
const nodes = '[slurm]\n[deployment]\ntype = "multi_node"\nnum_train_nodes = 2\nnum_infer_nodes = 2\n'

describe('the report', () => {
  it('names the owner of every written key, also in the tables of packages that are not here', async () => {
    folder.write({
      'a.toml': `max_steps = 5\n[trainer.model]\ncp = 1\nfp8 = true\nseq_len = 4096\n[orchestrator.router]\ntype = "sticky"\nmax_sessions = 9\n[inference.kv_cache_offload]\ntype = "mooncake"\n[inference.kv_cache_offload.cpu]\nnum_bytes = 5\n[inference.deployment]\ntype = "disaggregated"\n[inference.deployment.router]\ntype = "llm-d"\n[inference.deployment.router.scorers]\nqueue-scorer = 1\n${nodes}`,
    })
    const { owners } = report(await folder.compose('rl', ['@', 'a.toml']))
    expect(owners).toMatchObject({
      '@trilithon/runtime': ['max_steps'],
      '@trilithon/trainer': ['trainer.model.seq_len', 'trainer.max_steps'],
      '@trilithon/orchestrator': ['orchestrator.max_steps'],
      '@trilithon/builtin/sticky-router': ['orchestrator.router.type', 'orchestrator.router.max_sessions'],
      '@trilithon/cp': ['trainer.model.cp'],
      '@trilithon/fp8-deepgemm': ['trainer.model.fp8'],
      '@trilithon/mooncake-kv': ['inference.kv_cache_offload.type', 'inference.kv_cache_offload.cpu.num_bytes'],
      '@trilithon/llmd-router': ['inference.deployment.router.type', 'inference.deployment.router.scorers.queue-scorer'],
    })
    expect(owners['@trilithon/slurm']).toEqual(
      expect.arrayContaining(['slurm', 'inference.slurm', 'deployment.num_train_nodes', 'inference.deployment.type']),
    )
  })

  it('names packages that are asked for and not here, beside what fills their seam', async () => {
    folder.write({ 'a.toml': '[trainer.model]\nfp8 = true\n[orchestrator]\n[inference]\n' })
    const { plugins } = report(await folder.compose('rl', ['@', 'a.toml']))
    expect(plugins.filter(({ seam }) => seam === 'precision')).toMatchObject([
      { name: '@trilithon/builtin/fp32-recipe', origin: 'built-in', keys: [] },
      { name: '@trilithon/fp8-deepgemm', origin: 'not built yet', keys: ['trainer.model.fp8'] },
    ])
    expect(plugins.find(({ seam }) => seam === 'router')?.keys).toEqual([])
  })

  it('prints the ranks and nodes of a run', async () => {
    folder.write({ 'a.toml': `[trainer]\n[orchestrator]\n[inference.parallel]\ntp = 2\n${nodes}`, 'sft.toml': '' })
    const run = await folder.compose('rl', ['@', 'a.toml'])
    expect(report(run).ranks).toEqual({ train: 16, inference: 16, trainNodes: 2, inferenceNodes: 2 })
    expect(text(run)).toContain('  ranks  16 train on 2 nodes, 16 generate on 2 nodes\n')
    expect(text(await folder.compose('sft', ['@', 'sft.toml']))).toContain('  ranks  1 train on 1 node\n')
    const server = await folder.compose('inference', ['--parallel.dp', '3'])
    expect(text(server)).toContain('  ranks  3 generate on 1 node\n')
    expect(report(await folder.compose('env-server', [])).ranks).toBeUndefined()
  })

  it('lists what the embedded backends ignore and why, defaults that were written included', async () => {
    const written = await folder.compose('trainer', [
      '--model.attn',
      'flash_attention_2',
      '--model.compile',
      '--no-model.moe-use-grouped-mm',
    ])
    expect(report(written).ignored.map(({ path, reason }) => [path, /\S/.test(reason)])).toEqual([
      ['model.attn', true],
      ['model.compile', true],
      ['model.moe_use_grouped_mm', true],
    ])
    const silent = await folder.compose('trainer', ['--no-model.compile', '--no-model.trust-remote-code'])
    expect(report(silent).ignored).toEqual([])
  })

  it('tells one place once, however many roles take a key over', async () => {
    folder.write({ 'a.toml': '[wandb]\nproject = "p"\n[trainer]\n[orchestrator]\n[inference]\n' })
    const lines = text(await folder.compose('rl', ['@', 'a.toml'])).split('\n')
    expect(lines.filter((line) => line.includes('a.toml:1 '))).toEqual([
      '    a.toml:1  wandb = {"project":"p"} (also trainer.wandb, orchestrator.wandb)',
    ])
    expect(lines.filter((line) => /wait for a release/.test(line))).toHaveLength(1)
  })
})

describe('what a rule changes is said', () => {
  it('with the written value, the value that is used, and why', async () => {
    const { overruled } = await folder.compose('trainer', ['--bench', '--max-steps', '100', '--ckpt.interval', '5'])
    expect(overruled).toMatchObject([
      { path: 'max_steps', value: 100, used: 4, reason: expect.stringContaining('four steps') },
      { path: 'ckpt.interval', value: 5, used: null, reason: expect.stringContaining('no checkpoint') },
    ])
    const composition = await folder.compose('trainer', ['--model.attn', 'flash_attention_4', '--model.impl', 'custom'])
    expect(text(composition)).toContain('--model.attn  model.attn = "flash_attention_4"; "fa4" is used\n')
  })

  it('of a key that has no effect although it keeps its value', async () => {
    folder.write({ 'a.toml': '[weight_broadcast]\nport = 29502\n[trainer]\n[orchestrator]\n[inference]\n' })
    const { overruled } = await folder.compose('rl', ['@', 'a.toml'])
    expect(overruled).toMatchObject([{ path: 'weight_broadcast.port', value: 29502, used: 29502 }])
  })

  it('of a router process that one node has no use for, and of none that several nodes have', async () => {
    const router = '[trainer]\n[orchestrator]\n[inference.deployment.router]\ntype = "llm-d"\n'
    folder.write({ 'one.toml': router, 'several.toml': `${router}${nodes}` })
    const one = await folder.compose('rl', ['@', 'one.toml'])
    expect(one.unavailable).toEqual([])
    expect(one.overruled).toMatchObject([{ path: 'inference.deployment.router.type', reason: expect.stringContaining('is "single_node"') }])
    const several = await folder.compose('rl', ['@', 'several.toml'])
    expect(several.unavailable.map(({ path }) => path)).toContain('inference.deployment.router.type')
    expect(several.overruled).toEqual([])
    // The orchestrator's router is that one too, unless the file says otherwise.
    expect(several.resolved.orchestrator).toMatchObject({ router: { type: 'llm-d' } })
    const sticky = await folder.compose('rl', ['@', 'several.toml', '--orchestrator.router', 'sticky'])
    expect(sticky.resolved.orchestrator).toMatchObject({ router: { type: 'sticky' } })
    expect(one.resolved.orchestrator).toMatchObject({ router: { type: 'sticky' } })
  })

  it('and nothing of a resolved file that is read back', async () => {
    folder.write({ 'a.toml': `[trainer]\n[orchestrator]\n[inference.parallel]\ntp = 2\n${nodes}` })
    const { resolved } = await folder.compose('rl', ['@', 'a.toml'])
    for (const name of ['trainer', 'orchestrator', 'inference'] as const) {
      folder.write({ 'b.json': JSON.stringify(resolved[name]) })
      expect((await folder.compose(name, ['@', 'b.json'])).overruled).toEqual([])
    }
  })
})

describe('features that follow from others', () => {
  it('are not available either where their package is not here', async () => {
    folder.write({ 'a.toml': '[trainer.model.lora]\n[orchestrator]\n[inference]\n' })
    const { unavailable } = await folder.compose('rl', ['@', 'a.toml'])
    expect(unavailable.map(({ path, owner }) => [path, owner])).toEqual(
      expect.arrayContaining([
        ['trainer.model.lora', '@trilithon/lora'],
        ['inference.enable_lora', '@trilithon/lora'],
        ['orchestrator.student.model.lora', '@trilithon/lora'],
      ]),
    )
  })
})

describe('what prime-rl 0.6.0 forbids and this project allows is accepted, and the report says so', () => {
  const replay = '[trainer]\nenable_router_replay = true\n[orchestrator]\n'
  const disaggregated = nodes.replace('num_infer_nodes = 2', 'num_infer_nodes = 2') + '[inference.deployment]\ntype = "disaggregated"\n'
  it.each([
    [
      'router replay with KV offload',
      `${replay}[inference.kv_cache_offload]\ntype = "native"\ncpu = { num_bytes = 5 }\n`,
      /Router replay with inference\.kv_cache_offload is refused by prime-rl/,
    ],
    [
      'router replay with llm-d',
      `${replay}[inference]\n${disaggregated}[inference.deployment.router]\ntype = "llm-d"\n`,
      /Routed experts with the llm-d router are refused by prime-rl/,
    ],
    [
      'router replay with llm-d before engines of single nodes',
      `${replay}[inference.deployment.router]\ntype = "llm-d"\n${nodes}`,
      /Routed experts with the llm-d router are refused by prime-rl/,
    ],
    [
      'Mooncake without Slurm',
      '[trainer]\n[orchestrator]\n[inference.kv_cache_offload]\ntype = "mooncake"\ncpu = { num_bytes = 5 }\n',
      /Mooncake without \[slurm\] is refused by prime-rl/,
    ],
  ])('%s', async (_, toml, notice) => {
    const composition = await folder.write({ 'a.toml': toml }).compose('rl', ['@', 'a.toml'])
    expect(composition.notices.filter((one) => notice.test(one))).toHaveLength(1)
    expect(text(composition)).toMatch(notice)
  })

  it('and for an inference server alone', async () => {
    folder.write({
      'a.toml': `enable_return_routed_experts = true\n[slurm]\n[deployment]\ntype = "disaggregated"\n[deployment.router]\ntype = "llm-d"\n`,
    })
    const { notices } = await folder.compose('inference', ['@', 'a.toml'])
    expect(notices).toEqual([expect.stringContaining('llm-d')])
  })

  it('and sampling that biases the loss is pointed out', async () => {
    const { notices } = await folder.compose('orchestrator', ['--train.sampling.extra-body', '{"top_p": 0.9}'])
    expect(notices).toEqual([expect.stringMatching(/train\.sampling\.extra_body\.top_p leaves tokens out/)])
  })
})
