import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { TrilithonError } from '@trilithon/core'
import type { AdvantageTable } from '../configuration/advantage-table.ts'
import { type Advantage, type AdvantageInputs, defaultAdvantage, rewardAdvantage } from './advantage.ts'

/** An advantage of a user: one number per rollout of the group, given the table `kwargs` as second argument. */
export type CustomAdvantage = (inputs: AdvantageInputs, kwargs: Readonly<Record<string, unknown>>) => ArrayLike<number>

/**
 * The advantage that a configuration names; `folder` is where relative paths start. Throws `ADVANTAGE_INVALID` for a custom one that cannot be loaded or
 * answers wrongly, now or later.
 */
export async function createAdvantage(table: AdvantageTable | null, folder: string): Promise<Advantage> {
  if (table === null) return rewardAdvantage
  if (table.type === 'default') return defaultAdvantage(table)
  return loadCustomAdvantage(table.import_path, table.kwargs, folder)
}

async function loadCustomAdvantage(path: string, kwargs: Readonly<Record<string, unknown>>, folder: string): Promise<Advantage> {
  const [, file = '', name = 'default'] = /^([^#]+)(?:#(.+))?$/.exec(path) ?? []
  if (file === '') throw advantageInvalid(path, 'is no path of a module')
  let exports: Readonly<Record<string, unknown>>
  try {
    exports = await import(file.startsWith('.') || file.startsWith('/') ? pathToFileURL(resolve(folder, file)).href : file)
  } catch (cause) {
    throw advantageInvalid(path, `cannot be loaded: ${(cause as Error).message}`, cause)
  }
  const given = exports[name]
  if (typeof given !== 'function')
    throw advantageInvalid(path, `has no function ${name}; it exports ${Object.keys(exports).join(', ') || 'nothing'}`)
  const advantage: Advantage = (inputs) => callAdvantage(given as CustomAdvantage, inputs, kwargs, path)
  advantage(probe)
  return advantage
}

function callAdvantage(
  given: CustomAdvantage,
  inputs: AdvantageInputs,
  kwargs: Readonly<Record<string, unknown>>,
  path: string,
): readonly number[] {
  let answer: ArrayLike<number> | null | undefined
  try {
    answer = given(inputs, kwargs)
  } catch (cause) {
    throw advantageInvalid(path, `failed: ${(cause as Error).message}`, cause)
  }
  const values = Array.from(answer ?? [])
  const { rollouts } = inputs
  if (values.length !== rollouts.length) throw advantageInvalid(path, `returned ${values.length} numbers for ${rollouts.length} rollouts`)
  const wrong = values.findIndex((value) => typeof value !== 'number' || !Number.isFinite(value))
  if (wrong !== -1) throw advantageInvalid(path, `returned ${String(values[wrong])} for rollout ${rollouts[wrong]?.id}`)
  return values
}

const probeRollout = { environment: 'probe', taskId: '0', completionTokens: 1, turns: 1, isTruncated: false, metrics: {} }
/** A group of two, one right and one wrong. */
const probe: AdvantageInputs = {
  rollouts: [
    { ...probeRollout, id: 'probe-0', reward: 1 },
    { ...probeRollout, id: 'probe-1', reward: 0 },
  ],
  seqLen: 16,
}

function advantageInvalid(path: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('ADVANTAGE_INVALID', `The advantage ${path} ${reason}.`, {
    path: 'orchestrator.advantage.import_path',
    hint: 'Write a module whose function takes (inputs, kwargs) and returns one finite number per rollout of inputs.rollouts.',
    cause,
  })
}
