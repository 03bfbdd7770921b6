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

/** One sentence for a start that needs them; undefined where nothing is missing. */
export function missingRolesSentence(root: string, roles: readonly Role[]): string | undefined {
  const missing = missingRoles(root, roles)
  if (missing.length === 0) return undefined
  const names = missing.length === 1 ? missing[0] : `${missing.slice(0, -1).join(', ')} and ${missing.at(-1)}`
  return `the configuration of \`${root}\` is sound, but ${missing.length === 1 ? `the ${names} role is` : `the roles ${names} are`} not built yet`
}
