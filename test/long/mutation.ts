// Mutation testing of the folders that everything else depends on, one by one; a folder below 92 % fails. About an hour on two
// cores: npm run long -- mutation [FOLDER…]
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const FOLDERS = ['stop', 'tool', 'run'];
const given = process.argv.slice(2);
const unknown = given.find((folder) => !FOLDERS.includes(folder));
if (unknown !== undefined) {
  console.error(`mutation: '${unknown}' is none of ${FOLDERS.join(', ')}`);
  process.exit(2);
}
for (const folder of given.length > 0 ? given : FOLDERS) {
  const sources = `packages/core/src/${folder}`;
  const { status } = spawnSync(
    join(root, 'node_modules/.bin/stryker'),
    ['run', '--mutate', `${sources}/**/*.ts,!${sources}/**/*.test.ts`],
    { cwd: root, stdio: 'inherit' },
  );
  if (status !== 0) process.exitCode = 1;
}
