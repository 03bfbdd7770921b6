import type { CheckProblem } from '@trilithon/core'
import { modelPluginKeys } from './plugin-keys.ts'

/** The ranks of a trainer divide into copies, shards and context ranks without a rest; `at` is the path of the model table. */
export function* meshRules(ranks: number, model: object, at: string): Iterable<CheckProblem> {
  const { dp_replicate, cp, ep } = modelPluginKeys(model)
  const rest = (dp_replicate > 1 ? `dp_replicate ${dp_replicate} x ` : '') + `cp ${cp}`
  if (ranks % (dp_replicate * cp) !== 0) {
    yield {
      message: `${ranks} ranks train, which is no multiple of ${rest} = ${dp_replicate * cp}`,
      path: `${at}.${cp > 1 ? 'cp' : 'dp_replicate'}`,
      hint: 'Change one of them, or the number of ranks in [deployment].',
    }
    return
  }
  const perCopy = ranks / dp_replicate
  if (ep > 1 && perCopy % ep !== 0)
    yield {
      message: `A copy of the model has ${perCopy} ranks, which is no multiple of ep ${ep}`,
      path: `${at}.ep`,
      hint: 'Choose an ep that divides them.',
    }
}
