import { type RouterCaseName, routerCases } from './router-cases.ts'
import { type MakeRouter, openRouterContext, type RouterContext } from './router-context.ts'
import { describeSuite, type SuiteOptions } from './suite.ts'

/**
 * Holds a router to the contract of the seam: every sentence of it has at least one case, and each capability that is claimed adds cases.
 *
 *     describeRouter('my router', () => new MyRouter(), { capabilities: definition.capabilities })
 */
export function describeRouter(title: string, make: MakeRouter, options: SuiteOptions<RouterContext, RouterCaseName> = {}): void {
  describeSuite(title, routerCases, () => openRouterContext(make), options)
}
