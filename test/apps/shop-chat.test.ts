// Counts the changes between the two shop chats.
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const APP = join(import.meta.dirname, '../../examples/apps/shop-chat');
const MAX_ADDED = 25;

/** Their files by where they were before: the route has moved, to take the other requests of a chat too. */
const readFiles = (folder: string): ReadonlyMap<string, string> =>
  new Map(
    globSync('**/*.{json,ts,tsx}', { cwd: join(APP, folder) }).map((file) => [
      file.replace('/[[...path]]', ''),
      join(folder, file),
    ]),
  );

function changes(before: string, after: string): { added: number; removed: number } {
  const args = ['diff', '--no-index', '--numstat', '--', before, after];
  const { stdout } = spawnSync('git', args, { cwd: APP, encoding: 'utf8' });
  const [added = '0', removed = '0'] = stdout.split('\t');
  return { added: Number(added), removed: Number(removed) };
}

test('25 lines are added to get a Stop that stops, and the README says where', () => {
  const [before, after] = [readFiles('before'), readFiles('after')];
  expect([...after.keys()].toSorted()).toEqual([...before.keys()].toSorted());
  const counted = [...after].map(([key, file]) => ({ file, ...changes(before.get(key)!, file) }));
  const added = counted.reduce((sum, one) => sum + one.added, 0);
  const removed = counted.reduce((sum, one) => sum + one.removed, 0);
  for (const one of counted) console.log(`${one.file}: +${one.added} -${one.removed}`);
  console.log(`everything: +${added} -${removed}`);
  expect(added).toBeLessThanOrEqual(MAX_ADDED);
  const readme = readFileSync(join(APP, 'README.md'), 'utf8');
  expect(readme).toContain(`**${added} lines added**, ${removed} removed`);
  for (const one of counted) expect(readme).toContain(`| \`${one.file.replace('after/', '')}\` | ${one.added} |`);
});

test('shared files are in neither of the two apps', () => {
  const shared = readFiles('shared');
  expect([...readFiles('after').keys()].filter((file) => shared.has(file))).toEqual([]);
});
