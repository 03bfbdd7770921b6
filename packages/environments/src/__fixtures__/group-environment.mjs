import { defineEnvironment } from '@trilithon/environments'
import { z } from 'zod'

/** Scored by the order of the episodes. */
export default defineEnvironment({
  name: 'group',
  args: z.strictObject({}),
  scoring: 'group',
  dataset: () => ({ size: { train: null, eval: null }, task: ({ index }) => ({ index }) }),
  episode: async ({ model }) => model.turn('a'),
  score: (episodes) => episodes.map((_, index) => ({ reward: index, metrics: { pid: process.pid } })),
})
