export {};
//# sourceMappingURL=describe-machine.test.d.ts.map