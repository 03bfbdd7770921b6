// Losses of a user, right and wrong.
export default ({ trainerLogprobs, mask }, { scale = 1 }) => ({
  losses: [...mask].map((flag, token) => (flag === 1 ? -scale * trainerLogprobs[token] : 0)),
  gradients: [...mask].map((flag) => (flag === 1 ? -scale : 0)),
})
export const withMetrics = ({ mask }) => ({ losses: new Float64Array(mask.length), gradients: new Float64Array(mask.length), metrics: { tokens: mask.length } })
export const short = () => ({ losses: [0], gradients: [0] })
export const unmasked = ({ trainerLogprobs, mask }) => ({ losses: [...mask].map(() => 0), gradients: [...trainerLogprobs] })
export const nothing = () => undefined
export const failing = () => {
  throw new Error('not today')
}
export const noFunction = 3
