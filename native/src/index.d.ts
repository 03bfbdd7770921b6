import type { MachineInfo } from './machine-info.ts';
export type { FailureDetails } from './load-addon.ts';
export type { CoreInfo, CpuInfo, CudaInfo, InstructionSet, KernelTable, MachineInfo } from './machine-info.ts';
export * from './ops/index.ts';
export * from './tensor-types.ts';
export * from './tensors.ts';
/** Asks the processor, the operating system and the driver what this process may compute with. Takes a few milliseconds. */
export declare function describeMachine(): MachineInfo;
//# sourceMappingURL=index.d.ts.map