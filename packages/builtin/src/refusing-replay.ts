import { definePlugin, Replay, TrilithonError } from '@trilithon/core'

const refusal = () =>
  new TrilithonError('REPLAY_REFUSED', 'Router replay was asked for, and no plugin that can do it is installed.', {
    path: 'trainer.enable_router_replay',
    hint: 'Run: pnpm add @trilithon/r3-replay',
  })

/** The built-in `Replay`, created where no plugin claims router replay: it refuses whatever is asked of it. */
export const refusingReplay = definePlugin({
  name: '@trilithon/builtin/refusing-replay',
  fills: Replay,
  claims: [],
  create: (): Replay => ({
    start: async () => {
      throw refusal()
    },
    accept: () => {
      throw refusal()
    },
    join: () => {
      throw refusal()
    },
    dispose: async () => undefined,
  }),
})
