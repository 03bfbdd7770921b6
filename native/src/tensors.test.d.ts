export {};
//# sourceMappingURL=tensors.test.d.ts.map