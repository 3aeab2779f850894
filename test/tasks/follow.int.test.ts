// Many readers of few tasks through one store object, while another one writes: on every store that is shared.
import { type FollowEvent, followTask, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { describe, expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { startProxy } from '../servers/proxy.ts';
import { query } from '../servers/query.ts';
import { temporaryFolder } from './child.ts';
import { type HeldTask, running } from './held-task.ts';
import { openStore } from './open-store.ts';

const SOON = { timeout: 60_000, interval: 20 };
const TASKS = 4;
const ROUNDS = 30;

interface SharedStore extends AsyncDisposable {
  /** The location for writers. */
  readonly location: string;
  /** The location for readers: over a network that can be cut. */
  readonly readers: string;
  cut(): void;
  /** The server's remaining state of readers. */
  left(): Promise<unknown>;
}

const kinds: Readonly<Record<string, () => Promise<SharedStore>>> = {
  SQLite: openSqlite,
  Postgres: openPostgres,
};

describe.each(Object.entries(kinds))('on %s', (_name, open) => {
  test('readers that come, go, dawdle and lose the store all see the same journal, once', async () => {
    await using location = await open();
    await using writer = openStore(location.location);
    await using store = openStore(location.readers);
    const tasks = await Promise.all(Array.from({ length: TASKS }, () => running(writer)));
    const readers: Promise<void>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const task of tasks) {
        const after = round % 5;
        if (round % 3 === 0) readers.push(expectWhole(store, task, { after, isSlow: round % 2 === 0 }));
        const [leaver, leaving] = [followTask(store, task.ref), new AbortController()];
        const other = readAll(followTask(store, task.ref, { signal: leaving.signal }));
        const first = leaver.next();
        await writer.append(task.by, { after: 2 * round, events: [{ n: 2 * round + 1 }, { n: 2 * round + 2 }] });
        await first;
        leaving.abort();
        await Promise.all([leaver.return!(), other]);
      }
      if (round === ROUNDS / 2) location.cut();
    }
    for (const { by } of tasks) await writer.finish(by, { status: 'success' });
    await Promise.all(readers);
    await expect.poll(() => location.left(), SOON).toEqual([]);
  });

  test('a reader that leaves and returns immediately misses nothing', async () => {
    await using location = await open();
    await using writer = openStore(location.location);
    await using store = openStore(location.readers);
    const { ref, by } = await running(writer);
    for (let position = 1; position <= 20; position++) {
      const following = followTask(store, ref, { after: position - 1 });
      const next = following.next();
      await writer.append(by, { after: position - 1, events: [{ n: position }] });
      expect(await next).toMatchObject({ value: { position } });
      await following.return!();
    }
    await expect.poll(() => location.left(), SOON).toEqual([]);
  });
});

/** Reads a task to its end, and checks what the reader got. */
async function expectWhole(
  store: TaskStore,
  { ref }: HeldTask,
  { after, isSlow }: { readonly after: number; readonly isSlow: boolean },
): Promise<void> {
  const seen: FollowEvent[] = [];
  for await (const one of followTask(store, ref, { after })) {
    seen.push(one);
    if (isSlow) await store.get(ref).catch(() => {});
  }
  const positions = seen.flatMap((one) => (one.type === 'entry' ? [one.position] : []));
  expect(positions).toEqual(Array.from({ length: 2 * ROUNDS - after }, (_, i) => after + i + 1));
  expect(seen.at(-1)).toMatchObject({ type: 'end', task: { status: 'success' } });
}

async function readAll(following: AsyncIterator<FollowEvent>): Promise<void> {
  while ((await following.next()).done !== true);
}

function openSqlite(): Promise<SharedStore> {
  const folder = temporaryFolder();
  return Promise.resolve({
    location: folder.file,
    readers: folder.file,
    cut: () => {},
    left: () => Promise.resolve([]),
    [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
  });
}

async function openPostgres(): Promise<SharedStore> {
  const server = await borrowPostgres();
  const { hostname, port } = new URL(server.url);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  const toLocation = (url: string): string => JSON.stringify({ backend: 'postgres', url } satisfies TaskStoreConfig);
  return {
    location: toLocation(server.url),
    readers: toLocation(server.url.replace(/:\d+\//, `:${proxy.port}/`)),
    cut: () => proxy.cut(),
    left: () => query(server.url, "SELECT name FROM whoa.interests WHERE name LIKE 'i:%'"),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}
