import type { Disposable, Seam } from '../seam.ts'
import { KVStore } from './kv-store.ts'
import { Parallelism } from './parallelism.ts'
import { Precision } from './precision.ts'
import { Replay } from './replay.ts'
import { Router } from './router.ts'

/** The seams that core types, in the order of the design. Role packages add theirs as they fill them. */
export const coreSeams: readonly Seam<Disposable>[] = [Parallelism, Precision, KVStore, Router, Replay]
