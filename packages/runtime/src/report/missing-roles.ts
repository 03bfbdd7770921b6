import type { Role } from '@trilithon/core'

/** Roles whose process is part of this version, by root: the trainer of `sft` is another program than that of `rl`. */
const builtRoles: Readonly<Record<string, readonly Role[]>> = {
  rl: ['trainer', 'orchestrator', 'inference'],
  sft: ['trainer'],
  trainer: ['trainer'],
  inference: ['inference'],
  orchestrator: ['orchestrator'],
  'env-server': ['environment'],
}

/** Roots under which a role can be started. */
export function rootsOf(role: Role): string[] {
  return Object.entries(builtRoles).flatMap(([root, roles]) => (roles.includes(role) ? [root] : []))
}

/** Roles that a composition of this root needs and that do not exist yet. */
export function missingRoles(root: string, roles: readonly Role[]): Role[] {
  return roles.filter((role) => !rootsOf(role).includes(root))
}
