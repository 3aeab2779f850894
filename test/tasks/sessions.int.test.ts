import { createSqliteSessions } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import type { StoredSession } from '../../packages/tasks/src/ledger/sqlite-sessions.ts';
import { startChild, temporaryFolder } from './child.ts';

const toText = ({ messages }: StoredSession): string[] => messages.map((one) => (one as { content: string }).content);

test('processes save into one file at the same time: nothing is lost, and a shared session is whole', async () => {
  using folder = temporaryFolder();
  await using first = startChild('session-writer', [folder.file, 'ann', '100']);
  await using second = startChild('session-writer', [folder.file, 'bob', '100']);
  expect(await Promise.all([first.ended, second.ended])).toEqual([0, 0]);
  await using sessions = createSqliteSessions<StoredSession>(folder);
  expect((await sessions.list({ limit: 1_000 })).sessions).toHaveLength(201);
  const shared = await sessions.load('shared');
  expect(new Set(toText(shared!).map((text) => text.split(' ')[0])).size).toBe(1);
  expect(shared!.messages).toHaveLength(20);
});

test('sessions that were saved before a process was killed are complete, and others continue saving', async () => {
  using folder = temporaryFolder();
  await using killed = startChild('session-writer', [folder.file, 'ann', '100000']);
  await killed.hear((said) => said === 'ann-10');
  killed.process.kill('SIGKILL');
  await killed.ended;
  await using sessions = createSqliteSessions<StoredSession>(folder);
  for (const id of killed.said as string[]) expect((await sessions.load(id))?.messages).toHaveLength(20);
  await using next = startChild('session-writer', [folder.file, 'bob', '3']);
  expect(await next.ended).toBe(0);
  expect(await sessions.load('bob-2')).toBeDefined();
});
