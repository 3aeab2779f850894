// An end is reported for any of many tenants, of a task that has many newer ones, and whichever process wrote it.
import { createWebhooks } from '@whoa/server/webhooks';
import { createMemoryStore, createTaskStore, type TaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { temporaryFolder } from '../tasks/child.ts';
import { create } from '../tasks/held-task.ts';
import { startHookReceiver } from '../telemetry/hook-receiver.ts';

/** More than fit into a page, or could each be watched. */
const TENANTS = 1_050;
/** More than a look through a tenant's tasks reads. */
const NEWER = 510;
const PARALLEL = 64;
const SECRET = `whsec_${Buffer.from('a'.repeat(32)).toString('base64')}`;
const LONG_MS = 600_000;

interface Place extends AsyncDisposable {
  open(): TaskStore;
}

const places: Record<string, () => Promise<Place>> = {
  memory() {
    const store = createMemoryStore();
    return Promise.resolve({ open: () => store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() });
  },
  SQLite() {
    const { file, ...folder } = temporaryFolder();
    return Promise.resolve({
      open: () => createTaskStore({ backend: 'sqlite', file }),
      [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
    });
  },
  async Postgres() {
    const server = await borrowPostgres();
    return {
      open: () => createTaskStore({ backend: 'postgres', url: server.url }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

async function createMany(store: TaskStore, tenants: readonly string[]): Promise<void> {
  const left = tenants.values();
  const createNext = async (): Promise<void> => {
    for (const tenant of left) await create(store, { tenant });
  };
  await Promise.all(Array.from({ length: PARALLEL }, createNext));
}

test.for(Object.keys(places))('%s: every end is reported', { timeout: LONG_MS }, async (name) => {
  await using place = await places[name]!();
  const receiver = await startHookReceiver();
  await using watching = place.open();
  await using changing = place.open();
  await createMany(
    changing,
    Array.from({ length: TENANTS }, (_, i) => `u${i}`),
  );
  const webhook = { url: receiver.url, secret: SECRET, allowPrivateAddresses: true };
  await using webhooks = createWebhooks({ store: watching, webhooks: [webhook] });
  await webhooks.start();
  const ended: string[] = [];
  for (const tenant of ['aaa', 'u777', 'zzz']) {
    const { id } = await create(changing, { tenant });
    await createMany(changing, Array<string>(NEWER).fill(tenant));
    expect(await changing.cancel({ tenant, id })).toMatchObject({ result: 'accepted' });
    ended.push(id);
  }
  await receiver.received(ended.length);
  expect(new Set(receiver.hooks.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(ended));
});
