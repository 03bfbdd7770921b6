export {};
//# sourceMappingURL=machine-info.js.map