import type { PolicyVersion } from '@trilithon/core'
import type { Engine, EngineStats } from '../engine/engine.ts'

/** One of those who look at the engine's figures. */
export interface StatsView {
  /** `oldestVersionServed` is the oldest since this view's last look. */
  read(): EngineStats
}

/** The engine forgets the oldest version that it served with every look; here each view has its own. */
export class StatsReader {
  readonly #engine: Engine
  readonly #oldest = new Set<{ version: PolicyVersion | null }>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** For one who does not ask for the oldest version. */
  read(): EngineStats {
    const stats = this.#engine.stats()
    const { oldestVersionServed: version } = stats
    if (version !== null)
      for (const slot of this.#oldest) slot.version = slot.version === null || version < slot.version ? version : slot.version
    return stats
  }

  createView(): StatsView {
    const slot: { version: PolicyVersion | null } = { version: null }
    this.#oldest.add(slot)
    return {
      read: () => {
        const stats = this.read()
        const { version } = slot
        slot.version = null
        return { ...stats, oldestVersionServed: version }
      },
    }
  }
}
