import { setTimeout as wait } from 'node:timers/promises';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';

const LEASE_MS = 3_600_000;

test('3,000 cancels while the connection that listens is killed every 100 ms: none is lost', async () => {
  const cancels = 3_000;
  await using server = await startPostgres();
  await using canceller = createPostgresStore({ url: server.url });
  await using subscriber = createPostgresStore({ url: server.url });
  const ids = await createRunning(canceller, cancels);
  const seen = new Set<string>();
  const told = { hints: 0, resyncs: 0 };
  let readAgain = (): void => {};
  const ref = { tenant: 'acme' };
  // A hint makes a watcher read one task, a resync all of them.
  await using watching = await subscriber.watch({ worker: 'w' }, (hint) => {
    if (hint.type === 'cancel') {
      told.hints++;
      seen.add(hint.id);
    } else if (hint.type === 'resync') {
      told.resyncs++;
      readAgain();
    }
  });
  const reads: Promise<void>[] = [];
  readAgain = () => reads.push(readAllTasks(subscriber, seen));
  let kills = 0;
  const killer = startKiller(server, () => kills++);
  for (const id of ids) expect(await canceller.cancel({ ...ref, id })).toMatchObject({ result: 'accepted' });
  await killer[Symbol.asyncDispose]();
  await expect.poll(() => seen.size, { timeout: 30_000 }).toBe(cancels);
  await Promise.all(reads);
  console.log({ cancels, kills, ...told, notRungButFound: cancels - told.hints, lost: cancels - seen.size });
  expect(watching).toBeDefined();
  expect(kills).toBeGreaterThan(10);
  expect(told.resyncs).toBeGreaterThan(5);
});

async function readAllTasks(store: TaskStore, seen: Set<string>): Promise<void> {
  const { tasks } = await store.list({ tenant: 'acme', status: 'cancelling', limit: 10_000 });
  for (const { id } of tasks) seen.add(id);
}

async function createRunning(store: TaskStore, count: number): Promise<string[]> {
  const ids: string[] = [];
  const createSome = async (): Promise<void> => {
    while (ids.length < count) {
      const location = ids.push('') - 1;
      const receipt = await store.create({ tenant: 'acme', agent: 'a', input: location });
      ids[location] = (receipt as { task: TaskRecord }).task.id;
      const claim = { worker: 'w', leaseMs: LEASE_MS, session: 'session', claim: `${location}` };
      await store.claim(ids[location], claim);
    }
  };
  await Promise.all(Array.from({ length: 8 }, createSome));
  return ids;
}

function startKiller(server: PostgresServer, onKill: () => void): AsyncDisposable {
  const stopped = new AbortController();
  const killing = (async () => {
    while (!stopped.signal.aborted) {
      const killed = await query(
        server.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'whoa listens'",
      );
      if (killed.length > 0) onKill();
      await wait(100);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await killing;
    },
  };
}

interface Acknowledged {
  readonly events: string[];
  end?: 'success' | 'cancelled';
}

test('a server that crashes, restarts and freezes under load loses nothing it acknowledged', async () => {
  await using server = await startPostgres({ durable: true });
  const acknowledged = new Map<string, Acknowledged>();
  const counts = { operations: 0, unknown: 0, busy: 0 };
  let isOver = false;
  {
    // Shorter than the freeze, so that answers are lost on the way.
    await using store = createPostgresStore({ url: server.url, statementTimeoutMs: 1_000, maxAttempts: 10_000 });
    await store.list({ tenant: 'acme' });
    const load = Array.from({ length: 6 }, async (_, writer) => {
      for (let i = 0; !isOver; i++) await runOneTask(store, { key: `${writer}-${i}`, acknowledged, counts });
    });
    await wait(500);
    for (const mode of ['immediate', 'fast', 'immediate'] as const) {
      await server.restart(mode);
      await wait(500);
    }
    await server.pause();
    await wait(5_000);
    await server.resume();
    await wait(1_000);
    isOver = true;
    await Promise.all(load);
  }
  await server.restart('immediate');
  await using after = createPostgresStore({ url: server.url });
  const lost: string[] = [];
  for (const [id, { events, end }] of acknowledged) {
    const record = await after.get({ tenant: 'acme', id });
    const journal = (await after.read({ tenant: 'acme', id })).map(({ event }) => event);
    if (record === undefined) lost.push(`${id} is gone`);
    else if (end !== undefined && record.status !== end) lost.push(`${id} ended ${end}, is ${record.status}`);
    if (events.some((event, position) => journal[position] !== event)) lost.push(`${id}: ${journal.length} entries`);
    if (journal.length !== events.length) lost.push(`${id}: ${journal.length} entries, ${events.length} acknowledged`);
  }
  console.log({ tasks: acknowledged.size, ...counts, lost: lost.length });
  expect(lost).toEqual([]);
  expect(counts.unknown).toBeGreaterThan(0);
  expect(acknowledged.size).toBeGreaterThan(20);
});

interface TaskRun {
  readonly key: string;
  readonly acknowledged: Map<string, Acknowledged>;
  readonly counts: { operations: number; unknown: number; busy: number };
}

/** Creates a task, works on it and ends it. If a response is lost, the request is repeated. */
async function runOneTask(store: TaskStore, { key, acknowledged, counts }: TaskRun): Promise<void> {
  const retryWhileUnavailable = async <T>(ask: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        const answer = await ask();
        counts.operations++;
        return answer;
      } catch (error) {
        const { code } = error as { code?: string };
        if (code === 'UNKNOWN_OUTCOME') counts.unknown++;
        else if (code === 'STORE_BUSY') counts.busy++;
        else throw error;
        await wait(20);
      }
    }
  };
  const created = await retryWhileUnavailable(() => store.create({ tenant: 'acme', agent: 'a', input: key, key }));
  const { id } = (created as { task: TaskRecord }).task;
  const known: Acknowledged = { events: [] };
  acknowledged.set(id, known);
  const request = { worker: 'w', leaseMs: LEASE_MS, session: key, claim: key };
  const claimed = await retryWhileUnavailable(() => store.claim(id, request));
  if (claimed.result !== 'claimed') return expect.unreachable(`the claim of ${id} was answered ${claimed.result}`);
  const by = claimed.claim;
  for (let i = 0; i < 5; i++) {
    await retryWhileUnavailable(() => store.append(by, { after: i, events: [`${key}/${i}`] }));
    known.events.push(`${key}/${i}`);
  }
  const end = key.endsWith('3') ? 'cancelled' : 'success';
  if (end === 'cancelled') await retryWhileUnavailable(() => store.cancel({ tenant: 'acme', id }));
  const receipt = await retryWhileUnavailable(() => store.finish(by, { status: 'success' }));
  expect(receipt.status).toBe(end);
  known.end = end;
}
