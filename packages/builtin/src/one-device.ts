import { definePlugin, Parallelism } from '@trilithon/core'

/**
 * The built-in `Parallelism`, created where no plugin claims an axis: it names no axis and adds nothing, so `emptyPlan` stays as it is.
 */
export const oneDevice = definePlugin({
  name: '@trilithon/builtin/one-device',
  fills: Parallelism,
  claims: [],
  create: (): Parallelism => ({
    axes: [],
    contribute: (plan) => plan,
    dispose: async () => undefined,
  }),
})
