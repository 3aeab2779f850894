// Two servers and a worker, each a separate process, on one store.

import { createToken } from '@whoa/server';
import { createTaskClient } from '@whoa/server/task-client';
import type { FollowEvent } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { startProxy } from '../servers/proxy.ts';
import { type Child, startChild } from '../tasks/child.ts';
import { openStore } from '../tasks/open-store.ts';
import { storeKinds } from '../tasks/shared-stores.ts';

interface Said {
  readonly type: string;
  readonly port?: number;
  readonly reason?: object;
  readonly event?: object;
}

const said = (child: Child, type: string): Promise<Said> => child.hear<Said>((message) => message.type === type);

/** Reads along until something is so. */
async function takeUntil(
  following: AsyncIterator<FollowEvent>,
  into: FollowEvent[],
  isSo: () => boolean,
): Promise<void> {
  while (!isSo()) into.push((await following.next()).value as FollowEvent);
}

test.each(storeKinds)(
  'on $name, a task is stopped through another server, and its reader misses nothing',
  async (kind) => {
    const location = await kind.open();
    const { token, sha256 } = createToken();
    const [first, second, worker] = [
      startChild('task-server', [location.location, sha256]),
      startChild('task-server', [location.location, sha256]),
      startChild('task-worker', [location.location]),
    ];
    const [{ port: one }, { port: other }] = [await said(first, 'listening'), await said(second, 'listening')];
    const proxy = await startProxy({ host: '127.0.0.1', port: one! });
    const reader = createTaskClient({ url: `http://127.0.0.1:${proxy.port}`, token });
    const stopper = createTaskClient({ url: `http://127.0.0.1:${other}`, token });
    const store = openStore(location.location);
    try {
      const created = await reader.create({ agent: 'assistant', input: 'count', key: 'once' });
      expect(created.result).toBe('created');
      const { id } = (created as { task: { id: string } }).task;
      await said(worker, 'working');
      const lost: unknown[] = [];
      const following = reader.follow(id, { retryMs: 1, onDisconnect: (error) => lost.push(error) });
      const seen: FollowEvent[] = [];
      await takeUntil(following, seen, () => seen.length >= 3);
      proxy.cut();
      await takeUntil(following, seen, () => lost.length >= 1);
      // The server dies, and the balancer leads elsewhere.
      proxy.redirect({ host: '127.0.0.1', port: other! });
      first.process.kill('SIGKILL');
      await takeUntil(following, seen, () => lost.length >= 2);
      expect((await stopper.get(id))?.status).toBe('running');
      const receipt = await stopper.cancel(id, { reason: 'enough', mode: 'now' });
      expect(receipt).toMatchObject({ result: 'accepted', status: 'cancelling' });
      for await (const entry of following) seen.push(entry);
      const { reason } = receipt as { reason: object };
      expect(reason).toMatchObject({ kind: 'user', message: 'enough', by: 'ann', via: 'http' });
      expect((await said(worker, 'fired')).reason).toEqual(reason);
      expect((await said(second, 'audit')).event).toMatchObject({ actor: 'ann', target: id, result: 'accepted' });
      const end = seen.at(-1);
      expect(end).toMatchObject({ type: 'end', task: { id, status: 'cancelled', outcome: { reason } } });
      const entries = seen.flatMap((entry) => (entry.type === 'entry' ? [entry] : []));
      const positions = entries.map(({ position }) => position);
      expect(positions).toEqual(positions.toSorted((a, b) => a - b));
      const words = entries
        .map(({ event }) => (event.type === 'text' ? event.text : ''))
        .join('')
        .trim()
        .split(' ');
      expect(words).toEqual(words.map((_, index) => `${index + 1}`));
      expect(words.length).toBeGreaterThan(5);
      expect(await stopper.cancel(id)).toEqual({ result: 'too-late', status: 'cancelled' });
      expect(await store.get({ tenant: 'acme', id })).toEqual((end as { task: object }).task);
    } finally {
      for (const child of [first, second, worker]) await child[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await location[Symbol.asyncDispose]();
    }
  },
);
