import type { OpaquePayload, PolicyVersion, Turn } from '@trilithon/core'
import { joinExperts, rowsOf, type TurnRows } from './join-experts.ts'

/** A sample of a rollout before its group has advantages. Per-token arrays cover the completion. */
export interface DraftSample {
  readonly promptIds: Uint32Array
  readonly completionIds: Uint32Array
  readonly mask: Uint8Array
  readonly logprobs: Float32Array
  readonly temperatures: Float32Array
  readonly versions: Uint32Array
  readonly contextVersionsMin: Uint32Array
  /** Oldest version that sampled any of its tokens; Infinity where none was sampled. */
  readonly oldest: PolicyVersion
  readonly routedExperts?: OpaquePayload
}

/** A sample that later turns may extend: the turns that were merged so far. Its tokens are the prompt and completion of the last one. */
interface OpenSample {
  readonly turns: Turn[]
  readonly rows: TurnRows[]
}

const bytesOf = (ids: Uint32Array, length = ids.length): Buffer => Buffer.from(ids.buffer, ids.byteOffset, length * 4)

export const lengthOf = ({ promptIds, completionIds }: Turn): number => promptIds.length + completionIds.length

/** Whether the first tokens of `prompt` are all of `turn`. */
function extendsTurn(prompt: Uint32Array, turn: Turn): boolean {
  const before = turn.promptIds.length
  const length = lengthOf(turn)
  if (length > prompt.length) return false
  return (
    bytesOf(prompt, before).equals(bytesOf(turn.promptIds)) && bytesOf(prompt.subarray(before, length)).equals(bytesOf(turn.completionIds))
  )
}

/** Why a turn cannot be trained on, or undefined. */
export function findTurnFault(turn: Turn): string | undefined {
  const { completionIds, promptIds, temperature } = turn
  for (const name of ['logprobs', 'versions', 'contextVersionsMin'] as const)
    if (turn[name].length !== completionIds.length) return `${name} has ${turn[name].length} entries for ${completionIds.length} tokens`
  if (promptIds.length === 0) return 'its prompt is empty'
  if (!(temperature > 0 && temperature < Number.POSITIVE_INFINITY)) return `its temperature is ${temperature}`
  const wrong = turn.logprobs.findIndex((logprob) => !Number.isFinite(logprob))
  return wrong === -1 ? undefined : `the log-probability of token ${wrong} is ${turn.logprobs[wrong]}`
}

/**
 * Merges the turns of a rollout into as few sequences as their tokens allow: a turn whose prompt begins with a whole earlier sample extends it (the longest, where
 * several do), any other turn opens a sample, whose prompt is not trained. So every sampled token is trained once, in the sequence that it was sampled in.
 */
export function buildSamples(turns: readonly Turn[]): DraftSample[] {
  const open: OpenSample[] = []
  for (const turn of turns) {
    const parent = longest(open.filter((sample) => extendsTurn(turn.promptIds, last(sample))))
    const rows = rowsOf(turn, open)
    if (parent === undefined) open.push({ turns: [turn], rows: [rows] })
    else {
      parent.turns.push(turn)
      parent.rows.push(rows)
    }
  }
  return open.map(merge)
}

function last({ turns }: OpenSample): Turn {
  return turns.at(-1) as Turn
}

function longest(samples: readonly OpenSample[]): OpenSample | undefined {
  return samples.reduce<OpenSample | undefined>(
    (best, sample) => (best !== undefined && lengthOf(last(best)) >= lengthOf(last(sample)) ? best : sample),
    undefined,
  )
}

function merge(sample: OpenSample): DraftSample {
  const { turns } = sample
  const first = turns[0] as Turn
  const start = first.promptIds.length
  const length = lengthOf(last(sample)) - start
  const completionIds = new Uint32Array(length)
  const mask = new Uint8Array(length)
  const logprobs = new Float32Array(length)
  const temperatures = new Float32Array(length)
  const versions = new Uint32Array(length)
  const contextVersionsMin = new Uint32Array(length)
  let oldest = Number.POSITIVE_INFINITY
  let end = 0
  for (const turn of turns) {
    const place = turn.promptIds.length - start
    const next = place + turn.completionIds.length
    completionIds.set(turn.promptIds.subarray(start + end), end)
    completionIds.set(turn.completionIds, place)
    mask.fill(1, place, next)
    logprobs.set(turn.logprobs, place)
    temperatures.fill(turn.temperature, end, next)
    // Tokens of the environment have no version; they are masked, and carry that of the turn that read them.
    versions.fill(turn.versions[0] ?? 0, end, place)
    versions.set(turn.versions, place)
    contextVersionsMin.fill(turn.contextVersionsMin[0] ?? 0, end, place)
    contextVersionsMin.set(turn.contextVersionsMin, place)
    for (const version of turn.versions) if (version < oldest) oldest = version
    end = next
  }
  const routedExperts = joinExperts(sample.rows)
  return {
    ...{ promptIds: first.promptIds, completionIds, mask, logprobs, temperatures, versions, contextVersionsMin, oldest },
    ...(routedExperts === undefined ? {} : { routedExperts }),
  }
}
