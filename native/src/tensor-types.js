export {};
//# sourceMappingURL=tensor-types.js.map