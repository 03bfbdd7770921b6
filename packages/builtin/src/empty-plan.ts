import type { ParallelPlan, ParameterSpec } from '@trilithon/core'

/**
 * The plan of a model on one device: one rank, nothing split, every parameter whole, one gathering unit per `unit` of the parameters. It is what
 * the first `Parallelism` plugin of a run contributes to. Pure.
 */
export function emptyPlan(parameters: readonly ParameterSpec[], profile: string): ParallelPlan {
  const units = new Map<string, string[]>()
  for (const { name, unit } of parameters) {
    const names = units.get(unit)
    if (names === undefined) units.set(unit, [name])
    else names.push(name)
  }
  return {
    worldSize: 1,
    degrees: { dp_replicate: 1, fsdp: 1, ep: 1, cp: 1 },
    denseMesh: [],
    sparseMesh: [],
    placements: Object.fromEntries(parameters.map(({ name }) => [name, []])),
    gatheringUnits: Array.from(units, ([name, names]) => ({ name, parameters: names, reshardAfterForward: false })),
    profile,
    contextStyle: 'none',
    expertExchange: 'none',
  }
}
