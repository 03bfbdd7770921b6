import { coreSeams, type Disposable, KVStore, Parallelism, Precision, Replay, Router, type Seam, TrilithonError } from '@trilithon/core'
import type { PluginNames } from './plugin-names.ts'

/** What the files of a new plugin need to know of its seam. The sources stand in `templates/plugin/<id of the seam>`. */
export interface SeamTemplate {
  readonly seam: Seam<Disposable>
  /** Name of the interface and its token. */
  readonly title: string
  /** The claim, as the manifest in package.json tells it; its schema stands in the template. */
  claim(names: PluginNames): { at: string; type?: string; keys: string[]; inactive?: Record<string, boolean | number> }
  /** Configuration that chooses the plugin. */
  example(names: PluginNames): string
}

const templates: readonly SeamTemplate[] = [
  {
    seam: Router,
    title: 'Router',
    claim: ({ type }) => ({ at: 'orchestrator.router', type, keys: [] }),
    example: ({ type }) => `[orchestrator.router]\ntype = "${type}"`,
  },
  {
    seam: KVStore,
    title: 'KVStore',
    claim: ({ type }) => ({ at: 'inference.kv_cache_offload', type, keys: ['capacity_bytes'] }),
    example: ({ type }) => `[inference.kv_cache_offload]\ntype = "${type}"`,
  },
  {
    seam: Parallelism,
    title: 'Parallelism',
    claim: ({ key }) => ({ at: 'trainer.model', keys: [key], inactive: { [key]: 1 } }),
    example: ({ key }) => `[trainer.model]\n${key} = 2`,
  },
  {
    seam: Precision,
    title: 'Precision',
    claim: ({ key }) => ({ at: 'trainer.model', keys: [key], inactive: { [key]: false } }),
    example: ({ key }) => `[trainer.model]\n${key} = true`,
  },
  {
    seam: Replay,
    title: 'Replay',
    claim: ({ key }) => ({ at: 'trainer', keys: [key], inactive: { [key]: false } }),
    example: ({ key }) => `[trainer]\n${key} = true`,
  },
]

/** Ids of the seams that a plugin can be written for, in core's order. */
export const templateSeams: readonly string[] = coreSeams.map(({ id }) => id).filter((id) => templates.some(({ seam }) => seam.id === id))

/** Throws `USAGE_INVALID`. */
export function resolveSeamTemplate(id: string): SeamTemplate {
  const template = templates.find(({ seam }) => seam.id === id)
  if (template !== undefined) return template
  throw new TrilithonError('USAGE_INVALID', `there is no seam "${id}"`, {
    source: { kind: 'flag', flag: '--seam' },
    hint: `Seams: ${templateSeams.join(', ')}.`,
  })
}
