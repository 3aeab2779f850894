import { defineConfig } from 'vitest/config';

// What mutants are tried on: the fast tests, without the workspace's projects, which the mutation runner cannot read.
const conditions = ['@whoa/source'];
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { include: ['packages/*/src/**/*.test.ts'], exclude: ['**/*.int.test.ts', '**/node_modules/**'] },
});
