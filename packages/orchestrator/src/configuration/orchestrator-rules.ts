import type { CheckProblem, ConfigurationNotice, IsGiven } from '@trilithon/core'
import { environmentFileName, environmentName, type NamedEnvironment, unsafeEnvironmentName } from '@trilithon/environments/configuration'
import { inflightOf } from './orchestrator-derive.ts'
import type { OrchestratorConfiguration } from './orchestrator-schema.ts'
import { isVisionModel } from './plugin-keys.ts'
import { rendererOf } from './renderer-of.ts'

export function* orchestratorRules(config: OrchestratorConfiguration, isGiven: IsGiven): Iterable<CheckProblem> {
  yield* teacherRules(config)
  yield* rendererRules(config)
  yield* batchRules(config)
  yield* concurrencyRules(config)
  yield* environmentRules('train.env', config.train.env)
  yield* samplingRules(config, isGiven)
  if (config.eval !== null) yield* environmentRules('eval.env', config.eval.env)
  yield* filterRules('pre_batch_filters', config.pre_batch_filters)
  yield* filterRules('post_batch_filters', config.post_batch_filters)
}

function* teacherRules({ training_mode, teacher }: OrchestratorConfiguration): Iterable<CheckProblem> {
  if (training_mode === 'rl' && teacher !== null)
    yield { message: 'training_mode "rl" has no teacher', path: 'teacher', hint: 'Remove [teacher], or set training_mode = "opd".' }
  if (training_mode === 'opd' && teacher === null)
    yield { message: 'training_mode "opd" needs a teacher', path: 'teacher', hint: 'Add [teacher.model] and [teacher.client].' }
}

function* rendererRules(config: OrchestratorConfiguration): Iterable<CheckProblem> {
  const { renderer, student, tokenizer } = config
  if (renderer === null) {
    if (config.pool_size !== null)
      yield { message: 'pool_size counts renderers, and there is none', path: 'pool_size', hint: 'Remove pool_size, or choose a renderer.' }
    if (isVisionModel(student.model))
      yield { message: 'A vision model needs a renderer', path: 'student.model.vlm', hint: 'Remove renderer = "None".' }
    return
  }
  if (renderer.name === 'default' && (renderer.preserve_all_thinking || renderer.preserve_thinking_between_tool_calls))
    yield {
      message: 'The renderer "default" writes what the chat template says, and cannot keep thinking that the template drops',
      path: renderer.preserve_all_thinking ? 'renderer.preserve_all_thinking' : 'renderer.preserve_thinking_between_tool_calls',
      hint: 'Choose the renderer of the model by its name, or remove the key.',
    }
  const name = tokenizer.name ?? student.model.name
  if (renderer.name === 'auto' && rendererOf(name) === undefined)
    yield {
      message: `No renderer is known for "${name}"`,
      path: 'renderer.name',
      hint: 'Set renderer.name to a renderer that writes the same text, to "default" (the chat template), or renderer = "None" (the chat route).',
    }
}

function* batchRules(config: OrchestratorConfiguration): Iterable<CheckProblem> {
  const { batch_size, token_batch_size, oversampling_factor, max_inflight_rollouts, group_size } = config
  if (batch_size !== null && token_batch_size !== null)
    yield {
      message: 'batch_size and token_batch_size exclude each other',
      path: 'token_batch_size',
      hint: 'Keep one of them; the other is "None".',
    }
  else if (token_batch_size !== null) {
    if (oversampling_factor !== null)
      yield {
        message: 'oversampling_factor multiplies batch_size, and the batch is counted in tokens',
        path: 'oversampling_factor',
        hint: 'Set max_inflight_rollouts instead.',
      }
    if (max_inflight_rollouts === null)
      yield {
        message: 'token_batch_size needs max_inflight_rollouts',
        path: 'max_inflight_rollouts',
        hint: 'Set max_inflight_rollouts: it does not follow from a number of tokens.',
      }
  } else if (batch_size !== null) {
    if (batch_size % group_size !== 0)
      yield {
        message: `batch_size ${batch_size} is not a multiple of group_size ${group_size}`,
        path: 'batch_size',
        hint: 'Choose a multiple: a batch holds whole groups.',
      }
    const resolved = inflightOf(batch_size, group_size, oversampling_factor)
    if (resolved > Number.MAX_SAFE_INTEGER)
      yield {
        message: `batch_size ${batch_size} x oversampling_factor ${oversampling_factor} is more episodes than can be counted`,
        path: 'oversampling_factor',
        hint: 'Choose a small factor, as 2.',
      }
    else if (oversampling_factor !== null && max_inflight_rollouts !== resolved)
      yield {
        message: `max_inflight_rollouts ${max_inflight_rollouts} is not batch_size x oversampling_factor = ${resolved}`,
        path: 'max_inflight_rollouts',
        hint: 'Remove one of the two.',
      }
  }
  if (max_inflight_rollouts !== null && max_inflight_rollouts < group_size)
    yield {
      message: `max_inflight_rollouts ${max_inflight_rollouts} is below group_size ${group_size}`,
      path: 'max_inflight_rollouts',
      hint: 'Raise it to at least one group.',
    }
}

function* concurrencyRules(config: OrchestratorConfiguration): Iterable<CheckProblem> {
  const { adaptive_concurrency: adaptive, collect_inference_metrics, max_inflight_rollouts: max, train, eval: evals } = config
  if (adaptive === null) return
  const at = 'adaptive_concurrency'
  if (!collect_inference_metrics)
    yield {
      message: 'adaptive_concurrency looks at the metrics of the engines, and they are not read',
      path: at,
      hint: 'Set collect_inference_metrics = true, or remove [adaptive_concurrency].',
    }
  const group = Math.max(...[...train.env, ...(evals?.env ?? [])].map((one) => one.group_size))
  const least = adaptive.min_rollouts ?? group
  if (least < group)
    yield {
      message: `min_rollouts ${least} is below the largest group, of ${group} episodes`,
      path: `${at}.min_rollouts`,
      hint: 'Raise it to at least one group, or remove it.',
    }
  if (max !== null && least > max)
    yield {
      message: `The least number of episodes, ${least}, is above max_inflight_rollouts ${max}`,
      path: `${at}.min_rollouts`,
      hint: 'Raise max_inflight_rollouts, or lower min_rollouts or the largest group.',
    }
  const initial = adaptive.initial_rollouts
  if (initial !== null && (initial < least || (max !== null && initial > max)))
    yield {
      message: `initial_rollouts ${initial} is not between ${least} and max_inflight_rollouts ${max}`,
      path: `${at}.initial_rollouts`,
      hint: 'Choose a number between them, or remove it.',
    }
}

interface RatedEnvironment extends NamedEnvironment {
  readonly ratio: number | null
}

function* environmentRules(path: string, environments: readonly RatedEnvironment[]): Iterable<CheckProblem> {
  const first = new Map<string, number>()
  for (const [index, environment] of environments.entries()) {
    const name = environmentName(environment)
    const at = `${path}.${index}.${environment.name == null ? 'id' : 'name'}`
    // Two that differ by a slash alone would write into the same files.
    const earlier = first.get(environmentFileName(name))
    const unsafe = unsafeEnvironmentName(environment)
    if (name === 'all') yield { message: 'The name "all" stands for all environments together', path: at, hint: 'Choose another name.' }
    else if (unsafe !== undefined)
      yield {
        message: `The name ${JSON.stringify(name)} ${unsafe}, and names of environments are names of files`,
        path: at,
        hint: environment.name == null ? 'Give the environment a name.' : 'Choose a name of letters, digits, dots, dashes and underscores.',
      }
    else if (earlier !== undefined)
      yield {
        message: `Two environments have the name "${name}"`,
        path: at,
        hint: `Give one of them a name; the other is ${path}.${earlier}.`,
      }
    else first.set(environmentFileName(name), index)
  }
  const missing = environments.findIndex(({ ratio }) => ratio === null)
  if (missing !== -1 && environments.some(({ ratio }) => ratio !== null))
    yield {
      message: 'Some environments have a ratio and some have none',
      path: `${path}.${missing}.ratio`,
      hint: 'Set all of them, or none.',
    }
}

function* filterRules(path: string, filters: readonly { readonly type: string }[]): Iterable<CheckProblem> {
  const seen = new Set<string>()
  for (const [index, { type }] of filters.entries()) {
    if (seen.has(type)) yield { message: `The filter "${type}" stands twice`, path: `${path}.${index}.type`, hint: 'Keep one of them.' }
    seen.add(type)
  }
}

/** The train table itself, or an environment of it: where a key of `sampling.extra_body` was written. */
function writtenAt(index: number, key: string, isGiven: IsGiven): string {
  const own = `train.env.${index}.sampling.extra_body.${key}`
  return isGiven(own) ? own : `train.sampling.extra_body.${key}`
}

/** Without the log-probabilities of sampling the loss would compare the policy with itself, and no clipping would ever bind. */
function* samplingRules({ train, training_mode }: OrchestratorConfiguration, isGiven: IsGiven): Iterable<CheckProblem> {
  if (training_mode === 'sft') return
  const told = new Set<string>()
  for (const [index, { sampling }] of train.env.entries()) {
    const { logprobs } = sampling.extra_body
    const path = writtenAt(index, 'logprobs', isGiven)
    if (logprobs === undefined || logprobs === true || told.has(path)) continue
    told.add(path)
    yield {
      message: `extra_body.logprobs is ${JSON.stringify(logprobs)}, and the loss compares with the log-probabilities of sampling`,
      path,
      hint: 'Remove it: log-probabilities are always asked for.',
    }
  }
}

/** Why written values of the orchestrator are changed or not used, and what may bias the loss. */
export function* orchestratorNotices(config: OrchestratorConfiguration, isGiven: IsGiven): Iterable<ConfigurationNotice> {
  const { train, training_mode, teacher, bench, student } = config
  for (const path of ['renderer.tool_parser', 'renderer.reasoning_parser'])
    yield { path, message: 'Answers are handed to the environment as they are.', unused: true }
  if (bench) yield { path: 'max_steps', message: 'A measurement takes four steps.' }
  if (bench) yield { path: 'eval', message: 'A measurement makes no evaluations.', unused: true }
  if (training_mode === 'sft' && teacher !== null)
    yield { path: 'renderer', message: 'Samples of a teacher come from the chat route, without a renderer.', unused: true }
  if (student.client.elastic !== null)
    yield { path: 'student.client.base_url', message: 'The engines are found by DNS (elastic).', unused: true }
  if (training_mode === 'sft') return
  for (const [index, { sampling }] of train.env.entries()) {
    const { top_p, top_k, min_p } = sampling.extra_body
    const cut = Object.entries({ top_p: top_p !== undefined && top_p !== 1, top_k: (top_k ?? -1) !== -1, min_p: (min_p ?? 0) !== 0 })
    for (const [key] of cut.filter(([, isCut]) => isCut))
      yield `${writtenAt(index, key, isGiven)} leaves tokens out while sampling; the trainer counts all of them, which biases the loss.`
  }
}
