export {};
//# sourceMappingURL=kernels.test.d.ts.map