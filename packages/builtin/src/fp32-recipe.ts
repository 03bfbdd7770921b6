import { definePlugin, type ParameterSpec, Precision, type PrecisionRecipe, type Storage } from '@trilithon/core'

const profile = 'fp32'
const float32: Storage = { dtype: 'float32' }

function recipe(parameters: readonly ParameterSpec[]): PrecisionRecipe {
  const all = () => Object.fromEntries(parameters.map(({ name }) => [name, float32]))
  return { profile, master: float32, parameters: all(), activations: float32, gradients: float32, serving: all(), kv: float32 }
}

/** The built-in `Precision`: float32 everywhere, under the numerics profile `fp32`. */
export const fp32Recipe = definePlugin({
  name: '@trilithon/builtin/fp32-recipe',
  fills: Precision,
  claims: [],
  *check({ run }) {
    if (run.numericsProfile !== profile)
      yield {
        message: `The built-in precision computes under the numerics profile "${profile}", the run asks for "${run.numericsProfile}".`,
        path: 'numerics_profile',
        hint: `Set numerics_profile = "${profile}".`,
      }
  },
  create: (): Precision => ({ profile, recipe, dispose: async () => undefined }),
})
