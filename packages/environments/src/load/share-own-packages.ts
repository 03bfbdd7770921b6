import { register } from 'node:module'

/** What a module of a user may import without having installed it: it gets the copies that this process runs. */
const shared = ['@trilithon/environments', '@trilithon/core', 'zod']
let isShared = false

/**
 * Lets modules outside of the installation import this package. Where their own installation has it, that one is taken. Process-wide, so only worker
 * processes call it.
 */
export function shareOwnPackages(): void {
  if (isShared) return
  isShared = true
  const urls: Record<string, string> = {}
  for (const name of shared) urls[name] = import.meta.resolve(name)
  const hook = `
    let urls = {}
    export async function initialize(data) { urls = data }
    export async function resolve(specifier, context, next) {
      try { return await next(specifier, context) } catch (error) {
        if (error.code === 'ERR_MODULE_NOT_FOUND' && specifier in urls) return { url: urls[specifier], shortCircuit: true }
        throw error
      }
    }`
  register(`data:text/javascript,${encodeURIComponent(hook)}`, { data: urls })
}
