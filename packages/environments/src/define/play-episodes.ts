import { type Logger, silentLogger } from '@trilithon/core'
import { runEpisodes } from '../episode/run-episodes.ts'
import { prepareEnvironment } from '../load/load-environment.ts'
import type { EpisodeResult } from '../pool/environment-pool.ts'
import type { ChatMessage, RenderedPrompt, TurnRenderer } from '../turn-renderer.ts'
import type { TaskSplit } from './define-environment.ts'

export interface PlayEpisodesOptions {
  readonly args?: Readonly<Record<string, unknown>>
  readonly settings?: Readonly<Record<string, unknown>>
  readonly split?: TaskSplit
  readonly index?: number
  readonly seed?: number
  /** Episodes of the task: more than one for an environment that scores groups. */
  readonly count?: number
  readonly timeoutMs?: number
  readonly log?: Logger
  /** Plays the model: what it says to the conversation so far. Characters count as tokens. */
  readonly answer: (messages: readonly ChatMessage[], episode: number) => string | Promise<string>
}

export type PlayedEpisode = Pick<EpisodeResult, 'reward' | 'metrics' | 'error' | 'stopCondition' | 'isTruncated' | 'taskId'>

interface PlayedPrompt extends RenderedPrompt {
  readonly messages: readonly ChatMessage[]
}

const endOfTurn = 0
const codePoints = (text: string) => [...text].map((character) => character.codePointAt(0) ?? 0)

/**
 * Runs and scores episodes in this process, without an engine, a tokeniser or a worker: for tests of an environment. Throws `ENVIRONMENT_INVALID`; what goes
 * wrong in an episode is in its result, as in a run.
 */
export async function playEpisodes(environment: unknown, options: PlayEpisodesOptions): Promise<PlayedEpisode[]> {
  const {
    args = {},
    settings = {},
    split = 'train',
    index = 0,
    seed = 0,
    count = 1,
    timeoutMs = 10_000,
    log = silentLogger,
    answer,
  } = options
  const loaded = await prepareEnvironment(environment, { id: 'played', name: 'played', args, settings })
  /** Conversations by the ids that they were rendered to. */
  const conversations = new WeakMap<Uint32Array, readonly ChatMessage[]>()
  const renderer: TurnRenderer = {
    stopIds: [endOfTurn],
    render: (messages) => remember({ ids: Uint32Array.from(messages.flatMap(({ content }) => codePoints(content))), messages }),
    extend(previous, completionIds, next) {
      const { messages, ids } = previous as PlayedPrompt
      const said: ChatMessage = { role: 'assistant', content: renderer.decode(completionIds.subarray(0, -1)) }
      const all = [...messages, said, ...next]
      const added = next.flatMap(({ content }) => codePoints(content))
      return { prompt: remember({ ids: Uint32Array.from([...ids, ...completionIds, ...added]), messages: all }) }
    },
    decode: (ids) => Array.from(ids, (id) => String.fromCodePoint(id)).join(''),
  }
  const remember = (prompt: PlayedPrompt): PlayedPrompt => {
    conversations.set(prompt.ids, prompt.messages)
    return prompt
  }
  const plan = { split, index, seed, baseUrl: '', model: '', salt: '', sampling: { temperature: 1 }, wantsRoutedExperts: false }
  const outputs = await runEpisodes({
    environment: loaded,
    plans: Array.from({ length: count }, (_, episode) => ({
      ...{ ...plan, rolloutId: String(episode), headers: { episode: String(episode) }, maxSeqLen: 1_000_000, maxTotalCompletionTokens: -1 },
    })),
    renderer,
    client: {
      async generate({ tokenIds, headers }) {
        const text = await answer(conversations.get(tokenIds) ?? [], Number(headers.episode))
        const completionIds = Uint32Array.from([...codePoints(text), endOfTurn])
        const { length } = completionIds
        const versions = new Uint32Array(length)
        return {
          completionIds,
          logprobs: new Float32Array(length),
          versions,
          contextVersionsMin: versions,
          finishReason: 'stop',
          routedExperts: null,
        }
      },
    },
    signal: new AbortController().signal,
    deadlineMs: timeoutMs,
    ...{ firstAttempt: 0, maxRetries: 0, stateColumns: [], logsData: false, log, onTurn: () => undefined },
  })
  return outputs.map(({ reward, metrics, error, stopCondition, isTruncated, taskId }) => ({
    ...{ reward, metrics, stopCondition, isTruncated, taskId },
    ...(error === undefined ? {} : { error }),
  }))
}
