import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSqliteStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { startChild, temporaryFolder } from './child.ts';

test('50 messages in a second from two processes: one is answered, 49 are superseded, never two run at the same time', async () => {
  using folder = temporaryFolder();
  await using store = createSqliteStore(folder);
  const log = join(folder.path, 'runs.log');
  await using one = startChild('talker', [folder.file, log, 'one', '25']);
  await using two = startChild('talker', [folder.file, log, 'two', '25']);
  const children = [one, two];
  await Promise.all(children.map((child) => child.hear<{ type: string }>(({ type }) => type === 'ready')));
  for (const child of children) child.process.send('go');
  type Done = { type: string; statuses: string[]; sent: string[] };
  const done = await Promise.all(children.map((child) => child.hear<Done>(({ type }) => type === 'done')));
  expect(await Promise.all(children.map(({ ended }) => ended))).toEqual([0, 0]);

  const statuses = done.flatMap((child) => child.statuses).toSorted();
  expect(statuses).toEqual(['answered', ...Array.from({ length: 49 }, () => 'superseded')]);
  expect(done.flatMap(({ sent }) => sent)).toHaveLength(1);

  const { tasks } = await store.list({ tenant: 'default', limit: 100 });
  const ends = tasks.map(({ status, outcome }) => (status === 'cancelled' ? outcome?.reason?.kind : status));
  expect(ends.filter((end) => end === 'success')).toHaveLength(1);
  expect(ends.filter((end) => end === 'superseded')).toHaveLength(49);

  const lines = readFileSync(log, 'utf8').trim().split('\n');
  const inOrder = lines.toSorted((a, b) => Number(BigInt(a.split(' ')[0]!) - BigInt(b.split(' ')[0]!)));
  let running = 0;
  for (const line of inOrder) {
    running += line.endsWith('begin') ? 1 : -1;
    expect(running).toBeLessThanOrEqual(1);
  }
  expect(running).toBe(0);
});
