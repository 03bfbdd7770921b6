import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { TrilithonError } from '@trilithon/core'
import { z } from 'zod'
import type { Loss, LossInputs, SequenceLoss } from './loss.ts'

/** A loss of a user: as `Loss`, with the table `kwargs` as second argument; arrays may be plain, metrics may be absent. */
export type CustomLoss = (
  inputs: LossInputs,
  kwargs: Readonly<Record<string, unknown>>,
) => { readonly losses: ArrayLike<number>; readonly gradients: ArrayLike<number>; readonly metrics?: Readonly<Record<string, number>> }

export interface CustomLossOptions {
  /** `./file.mjs#name`, relative to `folder`, or `package#name`; without a name the default export. */
  readonly import_path: string
  readonly kwargs?: Readonly<Record<string, unknown>>
  /** Folder that relative paths start from. */
  readonly folder: string
}

/** Loads a loss and tries it once. Throws `LOSS_INVALID` for what cannot be loaded, is no function, or answers wrongly, then or later. */
export async function loadCustomLoss({ import_path: path, kwargs = {}, folder }: CustomLossOptions): Promise<Loss> {
  const [, file = '', name = 'default'] = /^([^#]+)(?:#(.+))?$/.exec(path) ?? []
  if (file === '') throw lossInvalid(path, 'is no path of a module')
  const isFile = file.startsWith('.') || file.startsWith('/')
  let exports: Readonly<Record<string, unknown>>
  try {
    exports = await import(isFile ? pathToFileURL(resolve(folder, file)).href : file)
  } catch (cause) {
    throw lossInvalid(path, `cannot be loaded: ${(cause as Error).message}`, cause)
  }
  const given = exports[name]
  if (typeof given !== 'function')
    throw lossInvalid(path, `has no function ${name}; it exports ${Object.keys(exports).join(', ') || 'nothing'}`)
  const loss: Loss = (inputs) => callLoss(given as CustomLoss, inputs, kwargs, path)
  loss(probe())
  return loss
}

const Numbers = z.custom<ArrayLike<number>>(
  (value) => Array.isArray(value) || value instanceof Float64Array || value instanceof Float32Array,
)
const Answer = z.looseObject({ losses: Numbers, gradients: Numbers, metrics: z.record(z.string(), z.number()).default({}) })

function callLoss(given: CustomLoss, inputs: LossInputs, kwargs: Readonly<Record<string, unknown>>, path: string): SequenceLoss {
  let answer: unknown
  try {
    answer = given(inputs, kwargs)
  } catch (cause) {
    throw lossInvalid(path, `failed: ${(cause as Error).message}`, cause)
  }
  const parsed = Answer.safeParse(answer)
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => issue.path.join('.') || 'the answer')
    throw lossInvalid(path, `returned something else than losses, gradients and metrics: ${faults.join(', ')}`)
  }
  const { losses, gradients, metrics } = parsed.data
  for (const [name, values] of Object.entries({ losses, gradients })) {
    if (values.length !== inputs.mask.length) throw lossInvalid(path, `returned ${values.length} ${name} for ${inputs.mask.length} tokens`)
    const outside = inputs.mask.findIndex((flag, token) => flag !== 1 && values[token] !== 0)
    if (outside !== -1) throw lossInvalid(path, `returned ${name} of ${values[outside]} for token ${outside}, which is not trained`)
  }
  return { losses: Float64Array.from(losses), gradients: Float64Array.from(gradients), metrics }
}

/** Two tokens of which one is trained; the other is NaN, as padding may be. */
function probe(): LossInputs {
  return {
    trainerLogprobs: Float64Array.of(Number.NaN, -1),
    inferenceLogprobs: Float64Array.of(Number.NaN, -1.5),
    advantages: Float64Array.of(Number.NaN, 1),
    mask: Uint8Array.of(0, 1),
    teacherLogprobs: Float64Array.of(Number.NaN, -0.5),
  }
}

function lossInvalid(path: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('LOSS_INVALID', `The loss ${path} ${reason}.`, {
    path: 'trainer.loss.import_path',
    hint: 'Write a module whose function takes (inputs, kwargs) and returns { losses, gradients, metrics }, one number per token.',
    cause,
  })
}
