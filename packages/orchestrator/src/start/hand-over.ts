import type { RolloutSender, WatchVersionsOptions } from '@trilithon/transport'

export interface HandOverOptions {
  readonly sender: Pick<RolloutSender, 'delivered'>
  /** Waits for versions of the weights, as the transport does. */
  readonly watch: (onVersion: (version: number) => void, options: WatchVersionsOptions) => Promise<void>
  /** Steps of the whole run. */
  readonly steps: number
  readonly signal: AbortSignal
  /** Called again and again while it takes time: a role that says nothing counts as hanging. */
  readonly onWait: () => void
  readonly sayMs?: number
}

/**
 * The end of a run whose batches do not lie where the trainer finds them: waits until it has all of them. The last version of the weights says the same, of a
 * trainer that has ended meanwhile.
 */
export async function handOver({ sender, watch, steps, signal, onWait, sayMs = 10_000 }: HandOverOptions): Promise<void> {
  const end = new AbortController()
  const inner = AbortSignal.any([signal, end.signal])
  const timer = setInterval(onWait, sayMs)
  const watching = watch((version) => (version >= steps ? end.abort() : undefined), { signal: inner })
  try {
    await sender.delivered(inner)
  } finally {
    clearInterval(timer)
    end.abort()
    await watching
  }
}
