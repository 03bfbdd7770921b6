/** What this process may compute with. Every absent thing is `null` and has a neighbour that says why in one sentence. */
export interface MachineInfo {
    /** Version of the native package. */
    readonly version: string;
    /** Compiler and version that built the addon. */
    readonly builtWith: string;
    readonly cpu: CpuInfo;
    readonly cores: CoreInfo;
    readonly cuda: CudaInfo;
}
export interface CpuInfo {
    readonly vendor: string;
    readonly model: string;
    /** True only when the processor has the instructions and the operating system lets this process use them. */
    readonly instructionSets: Readonly<Record<InstructionSet, boolean>>;
    /** Why AMX is refused although the processor has it. */
    readonly amxReason: string | null;
    /** Every kernel table, lowest first, with the reason where it does not run here. */
    readonly tables: readonly {
        readonly name: KernelTable;
        readonly unsupportedReason: string | null;
    }[];
    /** The table that computes; `null` when `TRILITHON_ISA` asks for one that cannot be had. */
    readonly table: KernelTable | null;
    /** Why that table, or why none. */
    readonly tableReason: string;
}
export type InstructionSet = 'sse4.2' | 'avx2' | 'fma' | 'f16c' | 'avx512f' | 'avx512bw' | 'avx512vl' | 'avx512dq' | 'avx512vnni' | 'avx512bf16' | 'avx512fp16' | 'amx-tile' | 'amx-bf16' | 'amx-int8';
export type KernelTable = 'scalar' | 'avx2' | 'avx512';
export interface CoreInfo {
    /** Distinct cores in this process's affinity mask. */
    readonly physical: number;
    /** Hardware threads in this process's affinity mask. */
    readonly logical: number;
    /** Cores' worth of time that the control group grants; `null` without a limit. */
    readonly quota: number | null;
    /** Threads that the pool uses; `null` when `TRILITHON_THREADS` is not a valid number. */
    readonly threads: number | null;
    readonly threadsReason: string;
}
export interface CudaInfo {
    /** The compiler found when the addon was built. */
    readonly compiler: {
        readonly path: string | null;
        readonly version: string | null;
        readonly unavailableReason: string | null;
    };
    /** Version of the driver's interface, such as "13.0". */
    readonly driverVersion: string | null;
    readonly devices: readonly {
        readonly name: string;
        readonly computeCapability: string;
        readonly memoryBytes: number;
    }[];
    /** Why no device can be used; `null` when there is one. */
    readonly unavailableReason: string | null;
}
//# sourceMappingURL=machine-info.d.ts.map