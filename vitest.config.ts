import { defineConfig } from 'vitest/config';

// Tests read the sources through this condition, so they need no build.
const conditions = ['@whoa/source'];
const shared = { resolve: { conditions }, ssr: { resolve: { conditions } } };
const setupFiles = ['test/setup.ts'];

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/*.int.test.ts', '**/node_modules/**'],
          // A busy machine is no reason to fail; a hang still is.
          testTimeout: 30_000,
          // These share nothing, so every core may take some.
          maxWorkers: '100%',
          setupFiles,
        },
      },
      {
        ...shared,
        test: {
          name: 'integration',
          include: ['packages/*/src/**/*.int.test.ts', 'test/**/*.int.test.ts'],
          setupFiles,
          testTimeout: 300_000,
          hookTimeout: 60_000,
          pool: 'forks',
          // Most of their time they wait for servers and timers.
          maxWorkers: 2,
          execArgv: ['--expose-gc'],
        },
      },
    ],
  },
});
