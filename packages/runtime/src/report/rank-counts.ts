import type { Composition } from '../compose/composition.ts'
import type { RlConfiguration } from '../roots/rl-configuration.ts'
import { inferenceRanks, sftRanks, worldSizes } from '../roots/world-sizes.ts'

/** How many ranks a run has, on how many nodes. */
export interface RankCounts {
  readonly train: number | undefined
  readonly inference: number | undefined
  readonly trainNodes: number | undefined
  readonly inferenceNodes: number | undefined
}

/** Counted from the resolved configuration; undefined for a root that says nothing of it. */
export function rankCountsOf({ root, resolved }: Composition): RankCounts | undefined {
  const config = resolved[root]
  if (root === 'rl') {
    const { train, inference, trainNodes, inferenceNodes } = worldSizes(config as unknown as RlConfiguration)
    return { train, inference: inferenceNodes === 0 ? undefined : inference, trainNodes, inferenceNodes: inferenceNodes || undefined }
  }
  if (root === 'sft') {
    const { ranks, nodes } = sftRanks(config as never)
    return { train: ranks, inference: undefined, trainNodes: nodes, inferenceNodes: undefined }
  }
  if (root === 'inference') {
    const { ranks, nodes } = inferenceRanks(config as never)
    return { train: undefined, inference: ranks, trainNodes: undefined, inferenceNodes: nodes }
  }
  return undefined
}
