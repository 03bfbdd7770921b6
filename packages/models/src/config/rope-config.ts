import { z } from 'zod'

/** Rotary embedding of a family. Frequencies are theta^(-2i/width), i < width / 2. */
export interface RopeConfig {
  readonly theta: number
  /** Dims that are rotated. */
  readonly width: number
  /** `half`: pairs (i, i + width/2); `interleaved`: pairs (2i, 2i + 1). */
  readonly layout: 'half' | 'interleaved'
}

const scaling = z.looseObject({ rope_type: z.string().optional(), type: z.string().optional() })

/** Both spellings of Hugging Face: `rope_parameters`, or `rope_theta` beside `rope_scaling`. */
export const RopeKeys = z.looseObject({
  rope_parameters: scaling.extend({ rope_theta: z.number().positive() }).nullish(),
  rope_theta: z.number().positive().nullish(),
  rope_scaling: scaling.nullish(),
})

/** Base of the rotary frequencies, or the sentence why it cannot be had. */
export function ropeTheta(keys: z.infer<typeof RopeKeys>): { theta: number } | { fault: string } {
  const { rope_parameters: parameters, rope_scaling: old } = keys
  const kind = parameters?.rope_type ?? parameters?.type ?? old?.rope_type ?? old?.type ?? 'default'
  if (kind !== 'default') return { fault: `rope scaling "${kind}" is not supported` }
  const theta = parameters?.rope_theta ?? keys.rope_theta
  if (theta === undefined || theta === null) return { fault: 'neither rope_parameters.rope_theta nor rope_theta is given' }
  return { theta }
}
