/**
 * What a run shows of itself: events of roles, files of metrics, lines and views on a terminal, pictures of curves.
 *
 * @module
 */
export { LiveBlock, type LiveBlockOptions } from './live-block.ts'
export { MetricsFile } from './metrics-file.ts'
export { type OutputFolderOptions, prepareOutputFolder, unusableOutput } from './output-folder.ts'
export { type ChartOptions, chart, type Panel, type Series } from './plot/chart.ts'
export { type PlottedRun, plotRuns } from './plot/plot-run.ts'
export { type Point, RunMetrics, readMetrics } from './plot/read-metrics.ts'
export { createReporter, launchedVariable, launchingParent, type ParentChannel, type Reporter, type ReporterOptions } from './reporter.ts'
export { reviveError } from './revive-error.ts'
export { isRoleEvent, type PlainError, type RoleEvent } from './role-event.ts'
export { evaluatedNames, evaluationReward, stepLine } from './step-line.ts'
export { duration, fitLine, round, sparkline } from './text.ts'
export type { ViewOutput } from './view-output.ts'
