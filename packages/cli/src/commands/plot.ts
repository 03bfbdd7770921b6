import { renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { plotRuns, readMetrics } from '@trilithon/monitor'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'

interface PlotOptions {
  readonly out?: string
  readonly title?: string
}

/** `plot <run>…`: the curves of runs as a picture. */
export function plotCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  return new Command('plot')
    .summary('a picture of the curves of a run')
    .description(
      'Draws what the metrics of a run tell, as SVG: reward with its evaluations, lag, mismatch, entropy, tokens per second, who waited; loss for supervised training. ' +
        'Several runs are drawn over each other. Readable on light and on dark backgrounds, also while the run goes on.',
    )
    .argument('<run...>', 'output folder of a run, or its metrics.jsonl')
    .option('--out <file>', 'file that is written; by default curves.svg in the folder of the run, or here for several runs')
    .option('--title <text>', 'title of the picture; by default the names of the runs')
    .option('--verbose', 'show stacks and causes of errors')
    .action((runs: string[], options: PlotOptions) => {
      plot(runs, options, host)
      finish(0)
    })
}

function plot(runs: readonly string[], { out, title }: PlotOptions, host: CommandLineHost): void {
  const files = runs.map((run) => metricsFile(resolve(host.workingDirectory, run)))
  const plotted = files.map((file) => ({ name: basename(dirname(file)), metrics: readMetrics(file) }))
  const [first] = files
  const folder = files.length === 1 && first !== undefined ? dirname(first) : host.workingDirectory
  const path = out === undefined ? join(folder, 'curves.svg') : resolve(host.workingDirectory, out)
  const picture = plotRuns(plotted, title ?? plotted.map(({ name }) => name).join(', '))
  try {
    // Aside and renamed: whoever watches the file sees a whole one.
    writeFileSync(`${path}.writing`, picture)
    renameSync(`${path}.writing`, path)
  } catch (cause) {
    throw new TrilithonError('OUTPUT_UNUSABLE', `${path} cannot be written: ${(cause as Error).message}`, {
      path: '--out',
      hint: 'Name another file with --out.',
      cause,
    })
  }
  host.stdout.write(`wrote ${path}\n`)
}

function metricsFile(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? join(path, 'metrics.jsonl') : path
}
