import type { TaskRecord } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';

// The driver warns when a connection gets two requests at the same time, and every process warning fails the file.
test('many who begin and cease to watch at the same time take turns on the one connection that listens', async () => {
  await using server = await borrowPostgres();
  await using store = createPostgresStore({ url: server.url });
  const workers = Array.from({ length: 20 }, (_, i) => `w${i}`);
  const heard: string[] = [];
  const everybody = Promise.withResolvers<void>();
  const watching = await Promise.all(
    workers.map((worker) =>
      store.watch({ worker }, (hint) => {
        if (hint.type === 'cancel' && !heard.includes(worker)) heard.push(worker);
        if (heard.length === workers.length) everybody.resolve();
      }),
    ),
  );
  await Promise.all(
    workers.map(async (worker) => {
      const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x' });
      const { id } = (receipt as { task: TaskRecord }).task;
      await store.claim(id, { worker, leaseMs: 60_000, session: worker, claim: id });
      expect(await store.cancel({ tenant: 'acme', id })).toMatchObject({ result: 'accepted' });
    }),
  );
  await everybody.promise;
  await Promise.all(watching.map((one) => one[Symbol.asyncDispose]()));
});
