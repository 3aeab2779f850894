// Checks the protocol of live text with Spin, plants its bugs in the model, and then in copies of the sources.
//   npm run long -- live [model|bugs|sources] [NAME...]
import { spawnSync } from 'node:child_process';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { checkLive } from '../model/check.ts';
import { largeLive, liveBugs } from '../model/live-configurations.ts';
import { liveMutations } from '../model/live-mutations.ts';
import { plant } from '../plant.ts';

const [part, ...names] = process.argv.slice(2);
const isWanted = (of: string, name: string): boolean =>
  (part ?? of) === of && (names.length === 0 || names.includes(name));

for (const { name, switches } of largeLive) {
  if (!isWanted('model', name)) continue;
  const checked = await checkLive(switches);
  console.log(JSON.stringify({ name, ...checked }));
  if (!checked.isWhole || checked.violation !== undefined) process.exitCode = 1;
}
for (const { name, switches } of liveBugs) {
  if (!isWanted('bugs', name)) continue;
  const { violation } = await checkLive(switches);
  console.log(`${violation === undefined ? 'MISSED' : 'rejected'} ${name}`);
  if (violation === undefined) process.exitCode = 1;
}
const root = join(import.meta.dirname, '../..');
// Beside the package: its tests find everything else by the same paths.
const copy = join(root, 'packages', `planted-${process.pid}`);
for (const [name, mutation] of Object.entries(liveMutations)) {
  if (!isWanted('sources', name)) continue;
  if (typeof mutation === 'string') {
    console.log(`elsewhere ${name}: ${mutation}`);
    continue;
  }
  try {
    await cp(join(root, 'packages/tasks/src'), join(copy, 'src'), { recursive: true });
    await plant([mutation.change], join(copy, 'src'));
    const args = ['vitest', 'run', '--project', 'unit', '--testTimeout', '20000', join(copy, 'src', mutation.test)];
    const { status, stdout } = spawnSync('npx', args, { cwd: root, encoding: 'utf8' });
    const isCaught = status !== 0 && / failed/u.test(stdout);
    console.log(`${isCaught ? 'caught' : 'MISSED'} ${name} by ${mutation.test}`);
    if (!isCaught) process.exitCode = 1;
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}
