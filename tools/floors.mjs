// @ts-check
/**
 * The floors of the house as data: who may import whom. `check-floors.mjs` enforces it, `CONTRIBUTING.md` explains it.
 * A new package is one word here.
 */

/** Top to bottom. An import goes to a lower floor. A name is a folder of `packages/`, `native`, or all folders of `plugins/` and `examples/`. */
export const floors = [
  ['cli', 'presets', 'examples/*'],
  ['runtime'],
  ['inference', 'orchestrator', 'trainer', 'planner'],
  ['models', 'transport', 'builtin', 'testing', 'plugins/*'],
  ['tensor'],
  ['native', 'environments', 'renderers', 'monitor'],
  ['core'],
]

/** Share data types in core and talk over transports. */
export const roles = ['inference', 'orchestrator', 'trainer']

/** What a plugin may import of ours; its tests may also use what tests may use. */
export const pluginMayImport = ['core', 'native', 'tensor']

/** What tests may import from their own floor. */
export const testsMayImport = ['testing']

/** The one door to the container library. */
export const container = { file: 'packages/runtime/src/container.ts', modules: ['tsyringe', 'reflect-metadata'] }

export const core = { folder: 'packages/core', codeLines: 1500, dependencies: ['zod'] }

/** The part of `native` that sees N-API. */
export const binding = { folder: 'native/binding', headers: ['napi.h', 'node_api.h', 'js_native_api.h'] }

export const scope = '@trilithon'
export const license = 'Apache-2.0'
