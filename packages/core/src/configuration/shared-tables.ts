import { z } from 'zod'

/**
 * Tables and keys of the configuration that more than one role has. What a single role has is in its own package.
 *
 * Everything is strict; null is a value of its own; every key has a default, so a resolved configuration is complete.
 */

/** Reduction orders that exist; a run has one. */
export const NumericsProfile = z.enum(['fp32', 'bf16']).default('fp32').meta({
  description: 'Numerics profile: the storage type and the order of every reduction. The same in trainer and inference.',
  unavailable: 'Only the fp32 profile is built.',
})

/** Every root has it; the runtime reads it before it chooses plugins. */
export const PluginPaths = z
  .array(z.string().min(1))
  .default([])
  .describe('Plugins beside the installed ones: package names, or paths of modules relative to the working directory.')

/** A key that turns a free-form table on: any JSON value below any name. */
export const FreeTable = z.record(z.string(), z.json())

const logLevel = z
  .string()
  .regex(/^(trace|debug|info|success|warning|warn|error|critical)$/i, 'must be trace, debug, info, success, warning, error or critical')

export const LogTable = z.strictObject({
  level: logLevel
    .default('info')
    .meta({ description: 'Lowest level of our own log lines that is written.', environment: 'PRIME_LOG_LEVEL' }),
  vf_level: logLevel
    .default('info')
    .meta({ description: 'Lowest level of log lines of the environments that is written.', environment: 'PRIME_VF_LOG_LEVEL' }),
  json_logging: z.boolean().default(false).describe('Write one JSON object per line instead of text.'),
  log_data: z.boolean().default(false).describe('Also log the data that is trained on; large.'),
  interval: z.number().gt(0).default(10).describe('Seconds between two lines of regular progress.'),
})

/** A model as every role names it. */
export const ModelTable = z.strictObject({
  name: z.string().min(1).default('Qwen/Qwen3-0.6B').describe('Folder of the model, or its name on Hugging Face.'),
  trust_remote_code: z.boolean().default(false).meta({
    description: 'Let the loader run Python code that ships with the model.',
    externalOnly: 'The embedded backends run no Python.',
  }),
})

export const TokenizerTable = z.strictObject({
  name: z.string().min(1).nullable().default(null).describe('Folder or name of the tokeniser; null takes that of the model.'),
  trust_remote_code: z
    .boolean()
    .nullable()
    .default(null)
    .meta({ description: 'As for the model; null takes its value.', externalOnly: 'The embedded backends run no Python.' }),
  chat_template: z
    .string()
    .nullable()
    .default(null)
    .describe('Chat template, as text or as the path of a file; null takes that of the tokeniser.'),
})

/** prime-rl has its micro-batches on the two ports between. */
const statePortOffset = 3

/** Ports that a trainer listens on for batches over sockets: they come in on the first, on the second it says what it lacks. */
export const rolloutPorts = (port: number): readonly [batches: number, state: number] => [port, port + statePortOffset]

/** How batches travel from orchestrator to trainer. */
export const RolloutTransport = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('filesystem').describe('Files below the output folder.') }),
    z.strictObject({
      type: z.literal('zmq').describe('ZeroMQ sockets; batches lie below the output folder of the orchestrator besides.'),
      host: z.string().min(1).default('localhost').describe('Host that the trainer listens on and the orchestrator connects to.'),
      port: z
        .int()
        .min(1)
        .max(65535 - statePortOffset)
        .default(5555)
        .describe('TCP port of the batches; the trainer listens on the third one behind it besides.'),
      hwm: z.int().min(1).default(10).describe('Batches that may wait for the trainer before the orchestrator is held.'),
    }),
  ])
  .prefault({ type: 'filesystem' })
  .describe('How batches travel from orchestrator to trainer; the same on both sides.')
export type RolloutTransport = z.output<typeof RolloutTransport>

export const HeartbeatTable = z
  .strictObject({ url: z.string().min(1).describe('Fetched with GET at every step.') })
  .nullable()
  .default(null)
  .meta({
    description: 'Tells a watchdog at every step that the process is alive; null tells nobody.',
    unavailable: 'Heartbeats are not built yet.',
  })

/** Room for features without a settled name; holds nothing now. */
export const ExperimentalTable = z.strictObject({}).prefault({}).describe('Features on trial; none at present.')
