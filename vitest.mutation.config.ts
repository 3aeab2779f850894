import { statSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Small files first: most mutants die in one of them. */
class SmallestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const size = ({ moduleId }: TestSpecification): number => statSync(moduleId).size;
    return Promise.resolve(files.toSorted((a, b) => size(a) - size(b)));
  }
}

// What mutants are tried on: the fast tests, without the workspace's projects, which the mutation runner cannot read. What
// runs in processes of its own is left out, for no mutant is active there, and so is what runs an agent while it loads: a
// mutant that hangs it would hang the load, which no test's time limit ends.
const conditions = ['@whoa/source'];
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/core/src/**/*.test.ts'],
    exclude: ['**/*.int.test.ts', '**/exit.test.ts', '**/checker.test.ts', '**/node_modules/**'],
    isolate: false,
    sequence: { sequencer: SmallestFirst },
    // Less than the mutation runner's limit: a mutant for which a test would wait for ever fails that test, and only one that
    // never lets go of the thread is ended from outside. Long enough for a busy machine: a slow test is no dead mutant.
    testTimeout: 20_000,
  },
});
