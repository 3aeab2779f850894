// Mutation testing of the files whose correctness everything else stands on. About ten minutes on two cores.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const { status } = spawnSync(join(root, 'node_modules/.bin/stryker'), ['run', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
