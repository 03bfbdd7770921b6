import { loadAddon } from './load-addon.js';
export * from './ops/index.js';
export * from './tensor-types.js';
export * from './tensors.js';
/** Asks the processor, the operating system and the driver what this process may compute with. Takes a few milliseconds. */
export function describeMachine() {
    return loadAddon().describeMachine();
}
//# sourceMappingURL=index.js.map