import { expect, it } from 'vitest'
import { stepLine } from './step-line.ts'

it('has the shape that tools for prime-rl look for, of both roles', () => {
  const trained = { 'time/step': 1.5, 'loss/mean': 0.25, 'entropy/all/mean': 2, 'mismatch_kl/all/mean': 0.01, 'optim/grad_norm': 0.5 }
  const machine = { 'perf/throughput': 1200, 'perf/mfu': 12.34, 'perf/peak_memory': 0.5 }
  expect(stepLine(3, { ...trained, ...machine, 'optim/lr': 1e-3, 'max_vio/mean': 0.75, 'routing_confidence/mean': 0.5 })).toBe(
    'Step 3 | 1.50s | Loss 0.2500 | Entropy 2.0000 | Mismatch KL 0.0100 | Grad. Norm 0.5000 | LR 1.00e-3 | Throughput 1200 tokens/s | MFU 12.3% | Peak Mem. 0.50 GiB | Max Vio 0.7500 | Routing Conf. 0.5000',
  )
  const batch = { 'reward/all/mean': 0.5, 'reward/a/mean': 0.5, 'progress/trainable': 6, 'progress/rollouts': 8, 'lag/max': 2 }
  const shares = { 'num_turns/all/mean': 1, 'error/all/mean': 0.1, 'is_truncated/all/mean': 0 }
  expect(stepLine(0, { ...batch, ...shares })).toMatch(
    /^Step 0 \| Reward:?\s+0\.5000 \| Trainable 6\/8 \(75\.0%\) \| Turns 1\.00 \| Max Off-Policy 2 \| Error 10\.0% \| Truncation 0\.0%$/,
  )
})

it('has a line more for each environment where there are several', () => {
  const values = { 'reward/all/mean': 0.5, 'reward/a/mean': 0.25, 'reward/b/mean': 0.75, 'batch/a': 0.4, 'num_turns/b/mean': 3 }
  expect(stepLine(1, values).split('\n')).toEqual([
    'Step 1 | Reward 0.5000',
    '  a | Reward 0.2500 | Share 40.0%',
    '  b | Reward 0.7500 | Turns 3.00',
  ])
})

it('says what share of an evaluation failed', () => {
  expect(stepLine(2, { 'eval/a/avg@2': 0.5, 'eval/a/policy_version': 2, 'eval/a/time': 61, 'eval/a/error/mean': 0.25 })).toBe(
    'Evaluated a (Step 2) | Policy v2 | 1:01 | Reward 0.5000 | Error 25.0%',
  )
})
