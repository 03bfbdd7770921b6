/**
 * The conformance kit: suites that hold a plugin to its seam's contract, and the fakes that they and plugins' own tests stand on. Runs under vitest.
 *
 * @module
 */
export { seedVariable } from './assert-property.ts'
export { describeKVStore } from './describe-kv-store.ts'
export { describeMutants, type Mutant, type MutationProof } from './describe-mutants.ts'
export { describePlugin } from './describe-plugin.ts'
export { describeRouter } from './describe-router.ts'
export { type FailingFilesOptions, failingFiles } from './failing-files.ts'
export { type FakeFleet, fakeFleet, fakeRequest } from './fake-fleet.ts'
export { fakeBlock, fakeExperts, fakeKey } from './fake-kv-block.ts'
export { type KVStoreCaseName, kvStoreCases } from './kv-store-cases.ts'
export { type KVStoreContext, type KVStoreHarness, type MakeKVStore, openKVStoreContext } from './kv-store-context.ts'
export { type ManualClock, manualClock } from './manual-clock.ts'
export { pluginCases } from './plugin-cases.ts'
export { type DescribePluginOptions, openPluginContext, type PluginContext } from './plugin-context.ts'
export { type LogLine, type RecordingLogger, recordingLogger } from './recording-logger.ts'
export { type RouterCaseName, routerCases } from './router-cases.ts'
export { type MakeRouter, openRouterContext, type RouterContext } from './router-context.ts'
export { someIds } from './some-ids.ts'
export { type CaseResult, type CaseSkip, runCases, type SuiteCase, type SuiteOptions, selectCases } from './suite.ts'
export { type TinyFamily, tinyFamilies, tinyModelJson } from './tiny-model-json.ts'
