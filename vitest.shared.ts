import { defineConfig } from 'vitest/config'

/** Tests run on sources: the `trilithon-src` export condition of every package points at `src/index.ts`. */
export default defineConfig({
  ssr: { resolve: { conditions: ['trilithon-src', 'node', 'import', 'default'] } },
  resolve: { conditions: ['trilithon-src', 'node', 'import', 'default'] },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    testTimeout: 20_000,
    // A machine that runs several packages at once on two cores needs far more than the second that is the default.
    expect: { poll: { timeout: 15_000 } },
    // Counted by `./trilithon test`; nx keeps it with a cached result.
    reporters: ['default', 'json'],
    outputFile: { json: 'test-results.json' },
    server: { deps: { inline: [/@trilithon\//] } },
  },
})
