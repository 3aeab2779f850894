import type { TaskRef, TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { ClaimRef, Orders } from '@whoa/tasks/store';
import pg from 'pg';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';

const LEASE_MS = 60_000;
const MAX_BYTES = 1_000;

interface Running {
  readonly ref: TaskRef;
  readonly by: ClaimRef;
}

async function startTasks(store: TaskStore, count: number): Promise<readonly Running[]> {
  await Promise.all(Array.from({ length: count }, () => store.create({ tenant: 'acme', agent: 'a', input: 'x' })));
  const request = { session: 's', worker: 'w', leaseMs: LEASE_MS, claim: 'c', takeNumber: 1, agents: ['a'] };
  const answer = await store.take({ ...request, limit: count });
  if (answer.result !== 'taken') return expect.unreachable();
  expect(answer.tasks).toHaveLength(count);
  return answer.tasks.map(({ claim, task: { tenant, id } }) => ({ ref: { tenant, id }, by: claim }));
}

const open = (url: string, schema: string): TaskStore =>
  createPostgresStore({ url, schema, maxJournalBytes: MAX_BYTES });
const getCode = (error: { code?: string }): string => error.code ?? 'no code';

test('appends that are due together are one transaction, and each has its own answer', async () => {
  await using server = await borrowPostgres();
  await using store = open(server.url, 'appends');
  const tasks = await startTasks(store, 30);
  const [plain, several, repeated, gap, full, lost, stopped, replacing, far] = tasks;
  await store.append(repeated!.by, { after: 0, events: ['once'] });
  await store.append(replacing!.by, { after: 0, events: ['Hel', 'lo'] });
  await store.cancel(stopped!.ref, { message: 'stopped' });
  const before = await readJournals(server.url);
  const append = (task: Running | undefined, after: number, events: string[], rest = {}): Promise<Orders | string> =>
    store.append(task!.by, { after, events, ...rest }).catch(getCode);
  const answers = await Promise.all([
    append(plain, 0, ['x'], { progress: true, activity: { turns: 2, calls: 1 } }),
    append(several, 0, ['one', 'two\0', 'three']),
    append(repeated, 0, ['once']),
    append(gap, 7, ['x']),
    append(full, 0, ['x'.repeat(MAX_BYTES)]),
    append({ ...lost!, by: { ...lost!.by, claim: 'of another' } }, 0, ['x']),
    append(stopped, 0, ['x']),
    append(replacing, 2, ['Hello'], { replaces: [1, 2] }),
    append(far, 2 ** 40, ['x']),
    // A repeat of the first, which is on its way.
    append(plain, 0, ['x']),
    ...tasks.slice(9).map((task, i) => append(task, 0, [`${i}`])),
  ]);
  expect(answers.map(toText)).toEqual([
    ...'0 0 0 JOURNAL_GAP JOURNAL_FULL LEASE_LOST stopped 0 JOURNAL_GAP 0'.split(' '),
    ...tasks.slice(9).map(() => '0'),
  ]);
  const events = async ({ ref }: Running): Promise<unknown[]> => (await store.read(ref)).map(({ event }) => event);
  expect(await events(plain!)).toEqual(['x']);
  expect(await events(several!)).toEqual(['one', 'two\0', 'three']);
  expect(await events(repeated!)).toEqual(['once']);
  expect(await events(replacing!)).toEqual(['Hello']);
  for (const task of [gap!, full!, lost!, far!]) expect(await events(task)).toEqual([]);
  expect(await store.get(plain!.ref)).toMatchObject({ position: 1, journalBytes: 3, activity: { turns: 2, calls: 1 } });
  expect(await store.get(several!.ref)).toMatchObject({ position: 3 });
  const written = await readJournals(server.url);
  const transactions = new Set([...written].filter(([key]) => !before.has(key)).map(([, transaction]) => transaction));
  // One transaction for all plain appends, one for the one that replaces.
  expect(transactions.size).toBe(2);
}, 60_000);

/** The number of the last order, why it stops the task, or the code of a refusal. */
function toText(answer: Orders | string): string {
  if (typeof answer === 'string') return answer;
  return answer.stop?.reason.message ?? `${answer.orderNumber}`;
}

/** Which transaction wrote each entry. */
async function readJournals(url: string): Promise<ReadonlyMap<string, string>> {
  const rows = await query(url, 'SELECT task || position AS entry, xmin::text AS transaction FROM appends.journal');
  return new Map(rows.map(({ entry, transaction }) => [entry as string, transaction as string]));
}

test('an append waits for its own row only, and no cancel waits for the others', async () => {
  await using server = await borrowPostgres();
  await using store = open(server.url, 'locked');
  const tasks = await startTasks(store, 10);
  const [locked, ...others] = tasks;
  const holder = new pg.Client(server.url);
  await holder.connect();
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT FROM locked.tasks WHERE id = $1 FOR UPDATE', [locked!.ref.id]);
    let isDone = false;
    const behind = store.append(locked!.by, { after: 0, events: ['x'] }).finally(() => (isDone = true));
    await Promise.all(others.map(({ by }) => store.append(by, { after: 0, events: ['x'] })));
    for (const { ref } of others) expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
    expect(isDone).toBe(false);
    await holder.query('COMMIT');
    expect(await behind).toMatchObject({ orderNumber: 0 });
  } finally {
    await holder.end();
  }
}, 60_000);

test('an append that the server refuses does not spoil the others', async () => {
  await using server = await borrowPostgres();
  await using store = open(server.url, 'refused');
  const [bad, ...others] = await startTasks(store, 5);
  await query(server.url, `ALTER TABLE refused.journal ADD CONSTRAINT whim CHECK (event::text <> '"bad"')`);
  const [refused, ...answers]: (Orders | string)[] = await Promise.all([
    store.append(bad!.by, { after: 0, events: ['bad'] }).catch(getCode),
    ...others.map(({ by }) => store.append(by, { after: 0, events: ['good'] })),
  ]);
  expect(refused).toBe('23514');
  expect(answers.map(toText)).toEqual(others.map(() => '0'));
}, 60_000);
