/**
 * Finds the compiled addon, on the first call that needs it: importing the package does nothing.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { TrilithonError } from '@trilithon/core';
// The same distance from src/ and from dist/.
const addonUrl = new URL('../build/Release/trilithon_native.node', import.meta.url);
let loaded;
/** Loads an addon file. Separate from `loadAddon` so that a test can point it at a file that is missing or damaged. */
export function loadAddonFrom(file) {
    if (!existsSync(file)) {
        throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon has not been built: ${file} does not exist.`, {
            hint: 'Run: ./trilithon build',
            details: { file },
        });
    }
    let addon;
    try {
        addon = createRequire(import.meta.url)(file);
    }
    catch (cause) {
        const reason = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
        throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon cannot be loaded: ${reason}`, {
            hint: 'Run: ./trilithon build (the addon must be built on a machine like this one)',
            cause,
            details: { file },
        });
    }
    addon.setErrorFactory(toError);
    return addon;
}
function toError(code, message, details) {
    const path = details.argument === undefined ? details.op : `${details.op}.${details.argument}`;
    return new TrilithonError(code, message, { path, details });
}
/** The addon of this process; each worker thread gets its own instance. */
export function loadAddon() {
    loaded ??= loadAddonFrom(fileURLToPath(addonUrl));
    return loaded;
}
/** Calls an op entry with its arguments in the order of its description. */
export function callOp(name, ...args) {
    const op = loadAddon().ops[name];
    if (op === undefined) {
        throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon has no op ${name}: it is older than this package.`, {
            hint: 'Run: ./trilithon build',
        });
    }
    op(...args);
}
//# sourceMappingURL=load-addon.js.map