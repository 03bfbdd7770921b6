import type { Role } from '@trilithon/core'

/** Roles whose process is part of this version. */
const builtRoles: readonly Role[] = []

/** Roles that a composition needs and that do not exist yet. */
export function missingRoles(roles: readonly Role[]): Role[] {
  return roles.filter((role) => !builtRoles.includes(role))
}

/** One sentence for a start that needs them; undefined where nothing is missing. */
export function missingRolesSentence(root: string, roles: readonly Role[]): string | undefined {
  const missing = missingRoles(roles)
  if (missing.length === 0) return undefined
  const names = missing.length === 1 ? missing[0] : `${missing.slice(0, -1).join(', ')} and ${missing.at(-1)}`
  return `the configuration of \`${root}\` is sound, but ${missing.length === 1 ? `the ${names} role is` : `the roles ${names} are`} not built yet`
}
