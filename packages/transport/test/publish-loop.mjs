// @ts-check
/** Publishes versions until it is killed: node publish-loop.mjs <broadcasts> <memory folder> <auto|never> <version>. Every element is the number of its version. */
import { createWeightsPublisher, latestVersion } from '../dist/index.js'

const [broadcasts, memoryFolder, memoryBacked] = /** @type {[string, string, 'auto' | 'never']} */ (process.argv.slice(2))
const publisher = createWeightsPublisher({
  broadcasts,
  memoryFolder,
  memoryBacked,
  profile: 'fp32',
  keep: 2,
  tensors: [
    { name: 'a', dtype: 'F32', shape: [300, 1000] },
    { name: 'b', dtype: 'BF16', shape: [999] },
  ],
})
// Versions whose data went with the last publisher are there no more, so its last number is given.
let version = Math.max(Number(process.argv[5]), latestVersion(broadcasts) ?? 0)
for (;;) {
  version += 1
  const value = version % 256
  await publisher.publish(version, (_name, _first, into) => void into.fill(value))
  publisher.collect([])
  if (latestVersion(broadcasts) !== version) throw new Error(`${version} is not the latest`)
  process.stdout.write(`${version}\n`)
}
