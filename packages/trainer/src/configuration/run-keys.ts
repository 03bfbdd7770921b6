import { HeartbeatTable, LogTable } from '@trilithon/core'
import { z } from 'zod'

/** Keys at the top of `trainer` and of `sft` alike. */
export const trainerRunKeys = {
  output_dir: z.string().min(1).default('outputs').describe('Folder of everything the run writes.'),
  matmul_precision: z
    .enum(['highest', 'high', 'medium'])
    .default('high')
    .meta({ description: 'Precision of fp32 products on GPUs.', externalOnly: 'The numerics profile fixes the precision of products.' }),
  max_steps: z.int().min(1).nullable().default(null).describe('Optimiser steps of the run; null has no end.'),
  memory_profiler_path: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .meta({ description: 'File of a memory profile; null writes none.', unavailable: 'Memory profiles are not built yet.' }),
  bench: z
    .strictObject({
      output_json: z.string().min(1).nullable().default(null).describe('File of the measured figures; null only logs them.'),
    })
    .nullable()
    .default(null)
    .describe('Measure: four steps on made-up data, no checkpoint; null trains.'),
  gc: z
    .strictObject({ interval: z.int().min(1).default(50).describe('Steps between two collections.') })
    .nullable()
    .prefault({})
    .meta({
      description: 'Collect garbage at chosen steps, on all ranks at once; null lets it happen.',
      externalOnly: 'Tensors live outside the JavaScript heap.',
    }),
  trace_path: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .meta({ description: 'Folder of a trace of every op; null writes none.', unavailable: 'Traces are not built yet.' }),
  dist_timeout_seconds: z
    .int()
    .min(1)
    .default(600)
    .meta({ description: 'Seconds that a rank waits for the others.', externalOnly: 'The embedded trainer is one process.' }),
  heartbeat: HeartbeatTable,
}

export const TrainerLogTable = LogTable.extend({
  log_data: LogTable.shape.log_data.meta({
    ...LogTable.shape.log_data.meta(),
    unavailable: 'The data that is trained on is not logged yet.',
  }),
  vf_level: LogTable.shape.vf_level.meta({
    ...LogTable.shape.vf_level.meta(),
    externalOnly: 'No environment runs beside the trainer.',
  }),
  interval: LogTable.shape.interval.meta({ ...LogTable.shape.interval.meta(), externalOnly: 'The trainer tells every step.' }),
  ranks_filter: z
    .array(z.int().min(0))
    .default([0])
    .meta({ description: 'Ranks whose lines are shown.', externalOnly: 'The embedded trainer is one process.' }),
})
