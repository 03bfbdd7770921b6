import type { AnyPlugin } from '@trilithon/core'
import { fp32Recipe } from './fp32-recipe.ts'
import { memoryKVStore } from './memory-kv-store.ts'
import { oneDevice } from './one-device.ts'
import { refusingReplay } from './refusing-replay.ts'
import { stickyRouter } from './sticky-router.ts'

/** One filling for each seam that core types, in core's order. */
export const builtinPlugins: readonly AnyPlugin[] = [oneDevice, fp32Recipe, memoryKVStore, stickyRouter, refusingReplay]
