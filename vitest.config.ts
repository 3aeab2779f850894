import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Tests read the sources through this condition, so they need no build.
const conditions = ['@whoa/source'];
const shared = { resolve: { conditions }, ssr: { resolve: { conditions } } };
const setupFiles = ['test/setup.ts'];
// What is polled comes late on a busy machine; a second is no bound for a fork or an election.
const expect = { poll: { timeout: 60_000 } };

// Tests start hundreds of processes from the same sources: compiled once, they start in a third of the time.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '.cache/compiled');
// Tests say themselves what is a terminal, and only terminals get colours.
delete process.env['FORCE_COLOR'];

/** Tests with real processes, servers and browsers. */
const real = {
  setupFiles,
  globalSetup: 'test/servers/pool.ts',
  testTimeout: 300_000,
  expect,
  hookTimeout: 180_000,
  pool: 'forks' as const,
  // A third of their time they wait for servers and timers, so two cores can work for three of them.
  maxWorkers: 3,
  execArgv: ['--expose-gc'],
};

/** One replaces a module, which would stay replaced for later files of its process; the others measure their process. */
const alone = [
  'test/tasks/cancellations-ioredis5.int.test.ts',
  'test/leaks.int.test.ts',
  'packages/acp/src/leaks.int.test.ts',
];

/** Of these files a change runs a part, and the night the whole: they ask `test/night.ts`, or surfaces that do. */
const partly = globSync('{packages,test}/**/*.int.test.ts', {
  cwd: import.meta.dirname,
  exclude: ['**/node_modules/**'],
}).filter((file) => /\/(night|surfaces\/\w+)\.ts'/.test(readFileSync(join(import.meta.dirname, file), 'utf8')));

export default defineConfig({
  test: {
    // npm run coverage: what the unit tests reach. The rest is reached by processes, servers and pages of the integration tests.
    coverage: {
      provider: 'v8',
      include: ['packages/*/src/**/*.ts'],
      exclude: ['**/*.test.ts'],
      reporter: ['text-summary', 'html'],
      reportsDirectory: '.cache/coverage',
      // A little below what was measured; raise them when more is reached.
      thresholds: {
        lines: 68,
        branches: 62,
        'packages/core/src/**': { lines: 99, branches: 97 },
        'packages/acp/src/**': { lines: 89, branches: 77 },
        'packages/tasks/src/**': { lines: 78, branches: 65 },
        'packages/ai-sdk/src/**': { lines: 69, branches: 69 },
        'packages/server/src/**': { lines: 56, branches: 47 },
      },
    },
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/*.int.test.ts', '**/*.nightly.test.ts', '**/node_modules/**'],
          // A busy machine is no reason to fail; a hang still is.
          testTimeout: 120_000,
          expect,
          // These share nothing, so every core may take some, and the files of a core one process: most of their time was loading.
          maxWorkers: '100%',
          isolate: false,
          setupFiles,
        },
      },
      {
        ...shared,
        test: {
          name: 'integration',
          include: ['packages/*/src/**/*.int.test.ts', 'test/**/*.int.test.ts'],
          exclude: [...alone, '**/node_modules/**'],
          ...real,
          // The files of a worker share a process: a third of its time was loading.
          isolate: false,
        },
      },
      { ...shared, test: { name: 'integration-alone', include: alone, ...real } },
      {
        ...shared,
        // npm run long -- nightly: too long for every change, or they install something.
        test: {
          name: 'nightly',
          include: ['test/**/*.nightly.test.ts', ...partly],
          env: { WHOA_NIGHT: '1' },
          ...real,
        },
      },
    ],
  },
});
