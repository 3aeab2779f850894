// Counts the changes between the two shop chats.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBounded } from '../../examples/apps/shop-chat/shared/lib/read-bounded.ts';
import { countChanges, readFiles, sum } from './changed-lines.ts';

const APP = join(import.meta.dirname, '../../examples/apps/shop-chat');
const MAX_ADDED = 31;
/** What the page shows of a stop. */
const NEW_FILE = 'app/chat/[id]/stopped.tsx';

test('31 lines are added to get a Stop that stops, and the README says where', () => {
  const after = readFiles(APP, 'after');
  const lines = readFileSync(join(APP, after.get(NEW_FILE)!), 'utf8').split('\n').length - 1;
  const isNew = (file: string): boolean => file === NEW_FILE;
  expect([...after.keys()].filter((file) => !isNew(file)).toSorted()).toEqual(
    [...readFiles(APP, 'before').keys()].toSorted(),
  );
  const counted = countChanges(APP);
  const [added, removed] = [sum(counted, 'added'), sum(counted, 'removed')];
  expect(added).toBeLessThanOrEqual(MAX_ADDED);
  const readme = readFileSync(join(APP, 'README.md'), 'utf8');
  expect(readme).toContain(`**${added} lines added**, ${removed} removed`);
  expect(readme).toContain(`\`${NEW_FILE}\`, has ${lines} lines`);
  for (const one of counted) expect(readme).toContain(`| \`${one.file.replace('after/', '')}\` | ${one.added} |`);
});

test('shared files are in neither of the two apps', () => {
  const shared = readFiles(APP, 'shared');
  expect([...readFiles(APP, 'after').keys()].filter((file) => shared.has(file))).toEqual([]);
});

test('an upload without a length, or without an end, is read up to its limit and then cancelled', async () => {
  const bounded = await readBounded(new Response(new Uint8Array(10)).body, 10);
  expect(bounded).toEqual(new Uint8Array(10));
  expect(await readBounded(null, 10)).toEqual(new Uint8Array(0));
  let pulled = 0;
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled++;
      controller.enqueue(new Uint8Array(4));
    },
    cancel: () => void (isCancelled = true),
  });
  expect(await readBounded(endless, 10)).toBeUndefined();
  expect(isCancelled).toBe(true);
  expect(pulled).toBeLessThan(6);
});
