import type { TaskStore } from '@whoa/tasks';
import { createSqliteStore } from '@whoa/tasks/internal';
import { expect, onTestFinished, test } from 'vitest';
import { createHome, type Home } from './terminal.ts';

/** A home whose configuration names a store that the test opens too. */
function setUp(): { readonly home: Home; readonly store: TaskStore } {
  const home = createHome();
  const file = home.folder.at('tasks.db');
  home.folder.write(
    'config/whoa/whoa.config.mjs',
    `export default { store: { backend: 'sqlite', file: ${JSON.stringify(file)} } };`,
  );
  const store = createSqliteStore({ file, maxAttempts: 1 });
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]();
    home[Symbol.dispose]();
  });
  return { home, store };
}

async function createFailed(store: TaskStore, input: string): Promise<string> {
  const receipt = await store.create({ tenant: 'acme', agent: 'assistant', input, conversation: input });
  const { id } = (receipt as { task: { id: string } }).task;
  const claimed = await store.claim(id, { worker: 'w', session: 's', claim: id, leaseMs: 60_000 });
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  await store.finish(claimed.claim, { status: 'failed', error: { message: 'no', code: 'WORKERS_LOST' } });
  return id;
}

test('paused tasks wait and are listed until they are resumed', async () => {
  const { store, home } = setUp();
  await store.create({ tenant: 'acme', agent: 'assistant', input: 'hello' });
  const take = async (number: number): Promise<number> => {
    const session = { session: 's', claim: `c${number}`, takeNumber: number, worker: 'w', leaseMs: 60_000 };
    const answer = await store.take({ ...session, agents: ['assistant'], limit: 1 });
    return answer.result === 'taken' ? answer.tasks.length : -1;
  };
  for (const [kind, name] of [
    ['agent', 'assistant'],
    ['tenant', 'acme'],
  ] as const) {
    const paused = await home.main(['pause', `--${kind}`, name]);
    expect([paused.status, paused.stdout]).toEqual([0, expect.stringContaining(`whoa resume --${kind} ${name}`)]);
    expect(await take(1)).toBe(0);
    const stats = await home.main(['tasks', '--stats', '--tenant', 'acme']);
    expect(stats.stdout).toMatch(/^acme +1 +0/m);
    expect(stats.stdout).toMatch(/^assistant +1 +\S+( ms| s)? +0/m);
    expect(stats.stderr).toContain(`${kind} ${name} is paused`);
    expect((await home.main(['resume', `--${kind}`, name])).status).toBe(0);
  }
  expect((await home.main(['tasks', '--stats'])).stdout).toContain('no worker serves it');
  expect(await take(1)).toBe(1);
});

test('failed tasks are requeued once, oldest first, and poison ones are listed', async () => {
  const { store, home } = setUp();
  const ids = [await createFailed(store, 'a'), await createFailed(store, 'b')];
  const listed = await home.main(['tasks', '--poison', '--tenant', 'acme', '--json']);
  expect(listed.stdout.trim().split('\n')).toHaveLength(2);
  const dry = await home.main(['requeue', '--poison', '--dry-run', '--tenant', 'acme']);
  expect([dry.stdout.trim().split('\n').toSorted(), dry.stderr]).toEqual([
    ids.toSorted(),
    expect.stringContaining('2 tasks'),
  ]);
  const first = await home.main(['requeue', '--failed', '--all-tenants', '--json']);
  const receipts = first.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { result: string });
  expect([first.status, receipts.map(({ result }) => result)]).toEqual([0, ['requeued', 'requeued']]);
  const again = await home.main(['requeue', ids[0]!, '--tenant', 'acme']);
  expect([again.status, again.stdout]).toEqual([0, expect.stringContaining('requeued before')]);
  expect((await store.counts({ tenant: 'acme' })).statuses).toMatchObject({ init: 2, failed: 2 });
  expect((await home.main(['requeue'])).status).toBe(2);
});

test('a tenant is erased only when that is confirmed, and a receipt is printed', async () => {
  const { store, home } = setUp();
  await createFailed(store, 'a');
  await store.create({ tenant: 'acme', agent: 'assistant', input: 'waits', conversation: 'b' });
  await store.create({ tenant: 'other', agent: 'assistant', input: 'stays' });
  const asked = await home.main(['erase', '--tenant', 'acme']);
  expect([asked.status, asked.stderr]).toEqual([2, expect.stringMatching(/2 tasks; add --yes/)]);
  const part = await home.main(['erase', '--tenant', 'acme', '--conversation', 'a', '--yes', '--json']);
  expect(JSON.parse(part.stdout)).toMatchObject({ tasks: 1, conversations: 1, isComplete: true });
  const all = await home.main(['erase', '--tenant', 'acme', '--yes']);
  expect([all.status, all.stdout]).toEqual([0, expect.stringMatching(/1 tasks and 1 conversations.*nothing is left/s)]);
  expect(await store.tenants()).toEqual({ tenants: ['other'] });
});

test('a halt pauses, stops everything of a tenant, and exits with 0 only when nothing runs', async () => {
  const { store, home } = setUp();
  const create = async (tenant: string): Promise<string> => {
    const receipt = await store.create({ tenant, agent: 'assistant', input: 'go' });
    return (receipt as { task: { id: string } }).task.id;
  };
  const [waiting, held, other] = [await create('acme'), await create('acme'), await create('other')];
  const claimed = await store.claim(held, { worker: 'w', session: 's', claim: 'c', leaseMs: 60_000 });
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  const first = await home.main(['halt', '--tenant', 'acme', '--timeout', '1ms', '--json', '--reason', 'fire']);
  expect(first.status).toBe(1);
  const receipt = JSON.parse(first.stdout) as { running: { until: number }[] };
  expect(receipt).toMatchObject({ type: 'halt', tenant: 'acme', isQuiet: false, stopped: 2, left: 1 });
  expect(receipt.running).toMatchObject([{ id: held, status: 'cancelling' }]);
  expect(receipt.running[0]!.until).toBeGreaterThan(Date.now());
  expect(await store.get({ tenant: 'acme', id: waiting })).toMatchObject({ status: 'cancelled' });
  expect(await store.get({ tenant: 'acme', id: held })).toMatchObject({ stop: { reason: { message: 'fire' } } });
  expect(await store.get({ tenant: 'other', id: other })).toMatchObject({ status: 'init' });
  const second = home.main(['halt', '--tenant', 'acme']);
  await store.finish(claimed.claim, { status: 'cancelled' });
  const { status, stdout } = await second;
  expect([status, stdout]).toEqual([0, expect.stringMatching(/resume --tenant acme\nNothing of tenant acme runs\.\n/)]);
  // Tasks that are created later wait.
  await create('acme');
  const session = { session: 's', claim: 'd', takeNumber: 1, worker: 'w', leaseMs: 60_000 };
  expect(await store.take({ ...session, agents: ['assistant'], limit: 9 })).toMatchObject({
    tasks: [{ task: { id: other } }],
  });
});

test('a halt of an agent reaches every tenant, ends the tasks of a dead worker, and is quiet when nothing is there', async () => {
  const { store, home } = setUp();
  const none = await home.main(['halt', '--agent', 'assistant', '--json']);
  expect([none.status, JSON.parse(none.stdout)]).toMatchObject([0, { agent: 'assistant', isQuiet: true, stopped: 0 }]);
  for (const tenant of ['a', 'b']) await store.create({ tenant, agent: 'assistant', input: 'go' });
  const { task } = (await store.create({ tenant: 'a', agent: 'assistant', input: 'go' })) as { task: { id: string } };
  await store.claim(task.id, { worker: 'dead', session: 's', claim: 'c', leaseMs: 1 });
  await store.create({ tenant: 'a', agent: 'other', input: 'stays' });
  const all = await home.main(['halt', '--agent', 'assistant', '--json']);
  expect([all.status, JSON.parse(all.stdout)]).toMatchObject([0, { isQuiet: true, stopped: 3, running: [] }]);
  expect((await store.counts({ tenant: 'a' })).statuses).toMatchObject({ init: 1, cancelled: 2 });
  expect((await home.main(['halt', '--agent', 'x', '--tenant', 'y'])).status).toBe(2);
});

test('approving a task that has ended says how it ended', async () => {
  const { store, home } = setUp();
  const id = await createFailed(store, 'a');
  for (const more of [[], ['--question', `${id}.q0`, '--yes']]) {
    const { status, stdout } = await home.main(['approve', id, '--tenant', 'acme', ...more]);
    expect([status, stdout]).toEqual([1, `${id.slice(0, 10)} had already ended: failed\n`]);
  }
});
