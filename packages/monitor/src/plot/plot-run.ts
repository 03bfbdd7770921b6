import { duration } from '../text.ts'
import { chart, type Panel, type Series } from './chart.ts'
import type { Point, RunMetrics } from './read-metrics.ts'
import { smooth, thin } from './scale.ts'

export interface PlottedRun {
  readonly name: string
  readonly metrics: RunMetrics
}

/** One curve of a panel: the first of `keys` that a run has. */
interface Curve {
  readonly name: string
  readonly keys: readonly string[]
  /** Also drawn as a mean over neighbouring steps, over the pale curve itself. */
  readonly isNoisy?: boolean
}

interface PanelPlan {
  readonly title: string
  readonly curves: readonly Curve[]
  readonly includes?: readonly number[]
  readonly isWide?: boolean
  readonly isFor?: 'rl' | 'sft'
  /** Evaluations are marked in it. */
  readonly hasEvaluations?: boolean
}

const plans: readonly PanelPlan[] = [
  {
    title: 'Reward',
    curves: [{ name: 'training batches', keys: ['reward/all/mean'], isNoisy: true }],
    includes: [0, 1],
    isWide: true,
    hasEvaluations: true,
  },
  {
    title: 'Loss',
    // A policy's loss says nothing of its progress.
    isFor: 'sft',
    curves: [
      { name: 'training', keys: ['loss'], isNoisy: true },
      { name: 'validation', keys: ['val/loss'] },
    ],
    isWide: true,
  },
  {
    title: 'Lag (versions)',
    curves: [
      { name: 'oldest token', keys: ['lag/max', 'off_policy_level/max'], isNoisy: true },
      { name: 'mean', keys: ['lag/mean', 'off_policy_level/mean'], isNoisy: true },
    ],
    includes: [0],
  },
  { title: 'Mismatch KL', curves: [{ name: 'Mismatch KL', keys: ['mismatch_kl/all/mean'], isNoisy: true }], includes: [0] },
  { title: 'Entropy', curves: [{ name: 'Entropy', keys: ['entropy/all/mean'] }], includes: [0] },
  {
    title: 'Tokens per second',
    curves: [
      { name: 'inference', keys: ['throughput/inference', 'inference/agg/throughput'], isNoisy: true },
      { name: 'trainer', keys: ['throughput/trainer', 'perf/throughput'], isNoisy: true },
    ],
    includes: [0],
  },
  {
    title: 'Waiting',
    curves: ['trainer', 'inference', 'orchestrator'].map((name) => ({ name, keys: [`idle/${name}`], isNoisy: true })),
    includes: [0, 1],
  },
  { title: 'Gradient norm', curves: [{ name: 'Gradient norm', keys: ['optim/grad_norm'], isNoisy: true }], includes: [0] },
]

const pointsPerCurve = 400

/** The curves of one run, or the first curve of each panel for several runs, as SVG. What no run has is left out. */
export function plotRuns(runs: readonly PlottedRun[], title: string): string {
  const hasRewards = runs.some(({ metrics }) => metrics.series('reward/all/mean').length > 0)
  const plansHere = plans.filter(({ isFor }) => isFor === undefined || isFor === (hasRewards ? 'rl' : 'sft'))
  const panels = plansHere.flatMap((plan) => panelOf(plan, runs))
  const ends = runs.map(({ metrics }) => endOf(metrics))
  const window = Math.max(...ends.map(({ steps }) => windowOf(steps)))
  const subtitle = [
    // Runs of one kind that end together are said once.
    [...new Set(ends.map(({ text }) => text))].join(', '),
    ...(window < 3 ? [] : [`a bold line over a pale one is its mean over ${window} steps`]),
  ].join(' · ')
  return chart({ title, subtitle, xTitle: 'step', panels })
}

function endOf(metrics: RunMetrics): { readonly steps: number; readonly text: string } {
  const steps = metrics.steps()
  const time = metrics.series('time/wall').at(-1)?.[1]
  return { steps, text: `${steps} steps${time === undefined ? '' : ` in ${duration(time)}`}` }
}

function panelOf(plan: PanelPlan, runs: readonly PlottedRun[]): Panel[] {
  const { title, includes = [], isWide = false, hasEvaluations = false } = plan
  const isSingle = runs.length === 1
  const shown = isSingle ? plan.curves : plan.curves.slice(0, 1)
  const series = runs.flatMap(({ name, metrics }, index) => [
    ...shown.flatMap((curve, number) =>
      // Several runs are named once, where there is room.
      drawn(metrics.firstSeries(curve.keys), isSingle ? curve.name : isWide ? name : '', isSingle ? number : index, curve.isNoisy === true),
    ),
    ...(hasEvaluations ? evaluations(metrics, isSingle ? plan.curves.length : index, isSingle) : []),
  ])
  if (series.length === 0) return []
  const curve = shown[0]?.name ?? title
  return [{ title: isSingle || curve === title || isWide ? title : `${title}: ${curve}`, series, includes, isWide }]
}

/** Steps that a noisy curve is averaged over. */
function windowOf(steps: number): number {
  return 2 * Math.floor(steps / 80) + 1
}

/** A noisy curve is its mean over about a fortieth of the run, with what is behind it pale. */
function drawn(points: readonly Point[], name: string, color: number, isNoisy: boolean): Series[] {
  const window = windowOf(points.length)
  if (points.length === 0) return []
  if (!isNoisy || window < 3) return [{ name, points: thin(points, pointsPerCurve), style: 'line', color }]
  return [
    { name, points: thin(points, pointsPerCurve), style: 'faint', color },
    { name, points: thin(smooth(points, window), pointsPerCurve), style: 'line', color },
  ]
}

function evaluations(metrics: RunMetrics, firstColor: number, isNamed: boolean): Series[] {
  const keys = metrics.keys().filter((key) => /^eval\/.+\/avg@\d+$/.test(key))
  return keys.map((key, index) => ({
    name: isNamed ? `evaluation ${keys.length === 1 ? '' : key.slice('eval/'.length, key.lastIndexOf('/'))}`.trim() : '',
    points: metrics.series(key),
    style: 'marks' as const,
    color: isNamed ? firstColor + index : firstColor,
  }))
}
