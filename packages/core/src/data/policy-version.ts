/** Number of optimiser steps behind the weights: 0 for the initial policy. Batch N trains version N into N + 1. */
export type PolicyVersion = number

/** Oldest and newest weights behind a piece of data, both included. */
export interface VersionRange {
  readonly min: PolicyVersion
  readonly max: PolicyVersion
}

/**
 * Lag of a sample in batch N: N minus the oldest version that generated any of its sampled tokens; 0 when it has none.
 * `versions` has one entry per completion token; entries of tokens that were not sampled are ignored through `mask`.
 */
export function lagOf(trainedVersion: PolicyVersion, versions: ArrayLike<PolicyVersion>, mask: ArrayLike<number | boolean>): number {
  let oldest = trainedVersion
  for (let index = 0; index < versions.length; index++) {
    const version = versions[index]
    if (version !== undefined && mask[index] && version < oldest) oldest = version
  }
  return trainedVersion - oldest
}
