import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { describeMachine } from './index.js';
import { loadAddonFrom } from './load-addon.js';
const addonFile = join(import.meta.dirname, '../build/Release/trilithon_native.node');
/** Runs describeMachine() in a process of its own, because the environment is read by the process under test. */
function describeWith(env) {
    const script = `const { describeMachine } = require(${JSON.stringify(addonFile)}); console.log(JSON.stringify(describeMachine()))`;
    const child = spawnSync(process.execPath, ['-e', script], { env: { ...process.env, ...env }, encoding: 'utf8' });
    expect(child.stderr).toBe('');
    return JSON.parse(child.stdout);
}
test('the machine is described with a reason for every absent thing', () => {
    const machine = describeMachine();
    expect(machine.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(machine.cores.physical).toBeGreaterThanOrEqual(1);
    expect(machine.cores.logical).toBeGreaterThanOrEqual(machine.cores.physical);
    expect(machine.cpu.tables.map((table) => table.name)).toEqual(['scalar', 'avx2', 'avx512']);
    expect(machine.cpu.tables[0]?.unsupportedReason).toBeNull();
    expect(machine.cuda.unavailableReason ?? machine.cuda.devices[0]?.name).toBeTruthy();
    expect(machine.cuda.compiler.path ?? machine.cuda.compiler.unavailableReason).toBeTruthy();
});
test('TRILITHON_ISA forces a lower table and TRILITHON_THREADS the pool size', () => {
    const machine = describeWith({ TRILITHON_ISA: 'scalar', TRILITHON_THREADS: '3' });
    expect(machine.cpu.table).toBe('scalar');
    expect(machine.cpu.tableReason).toBe('forced by TRILITHON_ISA=scalar');
    expect(machine.cores.threads).toBe(3);
});
test('a wrong value in the environment is reported, not replaced', () => {
    const machine = describeWith({ TRILITHON_ISA: 'avx1024', TRILITHON_THREADS: '1.5' });
    expect(machine.cpu.table).toBeNull();
    expect(machine.cpu.tableReason).toContain('TRILITHON_ISA=avx1024');
    expect(machine.cores.threads).toBeNull();
    expect(machine.cores.threadsReason).toContain('TRILITHON_THREADS=1.5');
});
test('every worker thread loads the addon', async () => {
    const script = `require('node:worker_threads').parentPort.postMessage(require(${JSON.stringify(addonFile)}).describeMachine().version)`;
    const versions = await Promise.all([1, 2, 3].map(() => new Promise((resolve, reject) => new Worker(script, { eval: true }).once('message', resolve).once('error', reject))));
    expect(new Set(versions)).toEqual(new Set([describeMachine().version]));
});
test('a missing addon is one error that says what to run', () => {
    expect(() => loadAddonFrom('/nowhere/trilithon_native.node')).toThrowError(expect.objectContaining({ code: 'NATIVE_UNAVAILABLE', hint: expect.stringContaining('./trilithon build') }));
});
test('a damaged addon is one error that says what to run', () => {
    const folder = mkdtempSync(join(tmpdir(), 'trilithon-native-'));
    try {
        const file = join(folder, 'damaged.node');
        writeFileSync(file, 'not a shared library');
        expect(() => loadAddonFrom(file)).toThrowError(expect.objectContaining({ code: 'NATIVE_UNAVAILABLE' }));
    }
    finally {
        rmSync(folder, { recursive: true });
    }
});
//# sourceMappingURL=describe-machine.test.js.map