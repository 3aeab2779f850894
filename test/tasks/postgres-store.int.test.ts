import { execFileSync } from 'node:child_process';
import type { TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { ClaimRef, Hint } from '@whoa/tasks/store';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { startProxy } from '../servers/proxy.ts';
import { query } from '../servers/query.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const LEASE_MS = 60_000;
const SOON = { timeout: 10_000, interval: 20 };
let schemas = 0;
const newSchema = (): string => `s${schemas++}`;
const ask = (sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> => query(server.url, sql, values);

async function createTask(store: TaskStore, rest: object = {}): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x', ...rest });
  return (receipt as { task: TaskRecord }).task;
}

interface Running {
  readonly ref: TaskRef;
  readonly by: ClaimRef;
}

async function createRunning(store: TaskStore, rest: object = {}): Promise<Running> {
  const { tenant, id } = await createTask(store, rest);
  const claim = { worker: 'w', leaseMs: LEASE_MS, session: 'session', claim: `claim of ${id}` };
  const answer = await store.claim(id, claim);
  return answer.result === 'claimed' ? { ref: { tenant, id }, by: answer.claim } : expect.unreachable();
}

const catchFailure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test('many stores that start at the same time make the schema once', async () => {
  const schema = newSchema();
  const stores = Array.from({ length: 8 }, () => createPostgresStore({ url: server.url, schema, maxConnections: 2 }));
  await Promise.all(stores.flatMap((store) => [createTask(store), createTask(store)]));
  const { tasks } = await stores[0]!.list({ tenant: 'acme' });
  expect(tasks).toHaveLength(16);
  await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
  expect(await ask(`SELECT format FROM ${schema}.layout`)).toEqual([{ format: 2 }]);
});

test('only a limit of running tasks needs its index, and a client with one adds it to a store that is used', async () => {
  const schema = newSchema();
  const findIndexes = async (): Promise<unknown[]> => {
    const sql = `SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname LIKE 'held%' AND i.indisvalid`;
    return (await ask(sql, [schema])).map((row) => row['relname']);
  };
  await using unlimited = createPostgresStore({ url: server.url, schema });
  await createRunning(unlimited);
  expect(await findIndexes()).toEqual([]);
  const limits = { maxRunningPerTenant: 1 };
  const limited = [1, 2, 3].map(() => createPostgresStore({ url: server.url, schema, ...limits }));
  const request = {
    session: 'other',
    worker: 'w',
    leaseMs: LEASE_MS,
    claim: 'c',
    takeNumber: 1,
    agents: ['a'],
    limit: 5,
  };
  await createTask(unlimited);
  expect((await Promise.all([limited[0]!.take(request), ...limited.map((store) => store.tenants())]))[0]).toMatchObject(
    { tasks: [] },
  );
  await expect.poll(findIndexes, SOON).toEqual(['held_tasks_by_tenant']);
  for (const store of limited) await store[Symbol.asyncDispose]();
});

test('a large limit of ready tasks is counted for a share of the tasks, so that a burst cannot pass it unseen', async () => {
  const maxReady = 1_001;
  await using store = createPostgresStore({ url: server.url, schema: newSchema(), maxReady, maxConnections: 1 });
  const create = async (): Promise<string> => (await store.create({ tenant: 'acme', agent: 'a', input: 'x' })).result;
  const first = await Promise.all(Array.from({ length: maxReady }, create));
  expect(new Set(first)).toEqual(new Set(['created']));
  // All but the first share a statement, and the limit is counted for one of fifty tasks.
  const burst = await Promise.all(Array.from({ length: 200 }, create));
  expect(burst.filter((result) => result === 'full').length).toBeGreaterThan(150);
});

test('two schemas in one database are isolated, including their notifications', async () => {
  await using one = createPostgresStore({ url: server.url, schema: newSchema() });
  await using other = createPostgresStore({ url: server.url, schema: newSchema() });
  const heard: Hint[] = [];
  await using watching = await other.watch({}, (hint) => heard.push(hint));
  const { id } = await createTask(one);
  expect(await other.get({ tenant: 'acme', id })).toBeUndefined();
  const mine = await createTask(other);
  await expect.poll(() => heard, SOON).toMatchObject([{ type: 'status', id: mine.id }]);
  expect(watching).toBeDefined();
});

test('a schema of another format or of other functions is rejected with an error and left alone', async () => {
  const schema = newSchema();
  const refusal = async (): Promise<unknown> => {
    await using store = createPostgresStore({ url: server.url, schema });
    return await catchFailure(store.list({ tenant: 'acme' }));
  };
  expect(await refusal()).toBeUndefined();
  await ask(`UPDATE ${schema}.functions SET digest = 'other'`);
  expect(await refusal()).toMatchObject({ message: expect.stringMatching(/other functions.*same build/) as string });
  await ask(`UPDATE ${schema}.layout SET format = 3`);
  expect(await refusal()).toMatchObject({
    code: 'STORE_SETUP',
    message: expect.stringMatching(
      /^Postgres at 127.0.0.1:\d+\/postgres: schema .* has format 3, .* update Whoa$/,
    ) as string,
  });
  expect(await ask(`SELECT format FROM ${schema}.layout`)).toEqual([{ format: 3 }]);
});

test('a move that waits for a change of the format is rejected once it is made', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  await createTask(store);
  const migration = new pg.Client(server.url);
  await migration.connect();
  await migration.query(`BEGIN; LOCK TABLE ${schema}.layout IN ACCESS EXCLUSIVE MODE`);
  const refused = catchFailure(createTask(store));
  const waiting = "SELECT FROM pg_stat_activity WHERE application_name = 'whoa' AND wait_event_type = 'Lock'";
  await expect.poll(async () => (await ask(waiting)).length, SOON).toBe(1);
  await migration.query(`UPDATE ${schema}.layout SET format = 3; COMMIT`);
  await migration.end();
  expect(await refused).toMatchObject({ code: 'STORE_SETUP', message: expect.stringContaining('format 3') as string });
  expect(await ask(`SELECT count(*)::int FROM ${schema}.tasks`)).toEqual([{ count: 1 }]);
});

test('a role that may not create anything works once the schemas exist, and learns what to do before', async () => {
  const schema = newSchema();
  await ask('CREATE ROLE plain LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC');
  const url = server.url.replace('postgres@', 'plain@');
  {
    await using store = createPostgresStore({ url, schema });
    await expect(createTask(store)).rejects.toMatchObject({
      code: 'STORE_SETUP',
      message: expect.stringContaining(`CREATE SCHEMA ${schema}`) as string,
    });
  }
  // Either an owner makes the empty schemas, or everything in them.
  await ask(`CREATE SCHEMA ${schema} AUTHORIZATION plain; CREATE SCHEMA ${schema}_v3 AUTHORIZATION plain`);
  {
    await using store = createPostgresStore({ url, schema });
    expect(await createTask(store)).toMatchObject({ status: 'init' });
  }
  const other = newSchema();
  {
    await using owner = createPostgresStore({ url: server.url, schema: other });
    await owner.list({ tenant: 'acme' });
  }
  await ask(
    `GRANT USAGE ON SCHEMA ${other}, ${other}_v3 TO plain; GRANT ALL ON ALL TABLES IN SCHEMA ${other} TO plain`,
  );
  await using store = createPostgresStore({ url, schema: other });
  expect(await createTask(store)).toMatchObject({ status: 'init' });
});

test('a schema that is not a name is rejected immediately', () => {
  for (const schema of ['', 'a"b', 'Upper', 'a b', 'x'.repeat(64)]) {
    expect(() => createPostgresStore({ schema })).toThrow(/^schema:/);
  }
});

test('names that Postgres would change are rejected by name', async () => {
  await using store = createPostgresStore({ url: server.url });
  await expect(createTask(store, { tenant: 'a\0b' })).rejects.toThrow(/^tenant:/);
  await expect(createTask(store, { conversation: '\ud800' })).rejects.toThrow(/^conversation:/);
  await expect(createTask(store, { preferredWorker: 'w\0' })).rejects.toThrow(/^preferredWorker:/);
  await expect(createTask(store, { tenant: '漢'.repeat(500), conversation: '漢'.repeat(500) })).rejects.toThrow(/2400/);
});

test('texts of users are returned exactly: nulls, the order of keys, halves of characters', async () => {
  await using store = createPostgresStore({ url: server.url });
  const said = { z: null, a: [1e300, 0.1, -5], text: '\0 \ud800 \u2028 ñ 🙂', nested: { '': '\\u0000' } };
  const { ref, by } = await createRunning(store, { input: said, conversation: 'exact' });
  const { tenant, id } = ref;
  await store.append(by, { after: 0, events: [said, null, '\0'] });
  await store.send(ref, { type: 'steer', message: said });
  await store.cancel({ tenant, id }, { message: '\0 why', by: 'ann', kind: 'odd\0' });
  const before = (await store.get({ tenant, id }))!;
  expect(JSON.stringify(before.inputs[0])).toBe(JSON.stringify(said));
  expect(before.commands).toEqual([{ type: 'steer', message: said, number: 1 }]);
  expect(before.stop?.reason).toMatchObject({ message: '\0 why', by: 'ann', kind: 'odd\0' });
  await store.finish(by, { status: 'success', result: said, answer: '\0', history: [said] });
  const { outcome } = (await store.get({ tenant, id }))!;
  expect(JSON.stringify(outcome?.result)).toBe(JSON.stringify(said));
  expect((await store.read({ tenant, id })).map(({ event }) => event)).toEqual([said, null, '\0']);
  expect((await store.conversation({ tenant, conversation: 'exact' }))?.history).toEqual([said]);
});

test('a hint too long for one notification comes in pieces, with its order', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  await using other = createPostgresStore({ url: server.url, schema });
  const heard: Hint[] = [];
  const { ref } = await createRunning(store);
  await using watching = await other.watch({ worker: 'w' }, (hint) => heard.push(hint));
  await store.cancel(ref, { message: 'x'.repeat(8_000) });
  await expect.poll(() => heard, SOON).toMatchObject([{ type: 'cancel', ...ref, worker: 'w' }]);
  const { stop } = (await store.get(ref))!;
  expect(heard[0]).toMatchObject({ order: { stop } });
  expect(watching).toBeDefined();
});

test('an order is rung under a name that cannot be guessed, for a claim that only its holder knows', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  await using canceller = createPostgresStore({ url: server.url, schema });
  const { ref, by } = await createRunning(store);
  const heard: Hint[] = [];
  await using watching = await store.watch({ worker: 'w' }, (hint) => heard.push(hint));
  const others: Hint[] = [];
  await using other = await canceller.watch({ tenant: 'acme' }, (hint) => others.push(hint));
  await ask('CREATE ROLE stranger LOGIN');
  const url = server.url.replace('postgres@', 'stranger@');
  await expect(query(url, `SELECT * FROM ${schema}.tasks`)).rejects.toThrow(/permission denied/);
  await expect(query(url, `SELECT * FROM ${schema}.interests`)).rejects.toThrow(/permission denied/);
  const inboxes = (await ask(`SELECT inbox FROM ${schema}.interests`)).map(({ inbox }) => inbox);
  expect(inboxes).toHaveLength(2);
  for (const inbox of inboxes) expect(inbox).toMatch(/^postgres:whoa_[0-9a-f]{24}$/);
  await canceller.cancel(ref, { message: 'mine' }, { mode: 'now' });
  await expect.poll(() => heard.length, SOON).toBe(1);
  const { stop, orderNumber } = (await store.get(ref))!;
  expect(heard).toEqual([
    { type: 'cancel', ...ref, worker: 'w', order: { epoch: 1, claim: by.claim, orderNumber, stop } },
  ]);
  // A watcher of the tenant sees the order, but not its claim.
  await expect.poll(() => others.length, SOON).toBe(1);
  expect(JSON.stringify(others)).not.toContain(by.claim);
  expect([watching, other]).toHaveLength(2);
});

test('a burst of cancels brings every order along', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  await using canceller = createPostgresStore({ url: server.url, schema });
  const tasks = await Promise.all(Array.from({ length: 200 }, () => createRunning(store)));
  const orders = new Map<string, unknown>();
  await using watching = await store.watch(
    { worker: 'w' },
    (hint) => 'order' in hint && orders.set(hint.id, hint.order),
  );
  await Promise.all(tasks.map(({ ref }) => canceller.cancel(ref, { message: ref.id })));
  await expect.poll(() => orders.size, SOON).toBe(200);
  for (const { ref, by } of tasks) {
    expect(orders.get(ref.id)).toMatchObject({ epoch: 1, claim: by.claim, stop: { reason: { message: ref.id } } });
  }
  expect(watching).toBeDefined();
});

test('an answer that was lost is an unknown outcome, and asking again is safe', async () => {
  const { hostname, port } = new URL(server.url);
  await using proxy = await startProxy({ host: hostname, port: Number(port) });
  const schema = newSchema();
  await using direct = createPostgresStore({ url: server.url, schema });
  await using store = createPostgresStore({ url: server.url.replace(port, `${proxy.port}`), schema });
  const { ref, by } = await createRunning(store);
  proxy.swallowAnswers();
  const failure = catchFailure(store.finish(by, { status: 'success', answer: 'done' }));
  await proxy.swallowed;
  proxy.cut();
  expect(await failure).toMatchObject({ code: 'UNKNOWN_OUTCOME', operation: 'finish' });
  expect(await direct.get(ref)).toMatchObject({ status: 'success', outcome: { answer: 'done' } });
  expect(await store.finish(by, { status: 'success', answer: 'done' })).toEqual({
    result: 'unchanged',
    status: 'success',
  });
});

test('a connection that the server ends while it works is an unknown outcome', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  const { ref } = await createRunning(store);
  const holder = new pg.Client(server.url);
  await holder.connect();
  await holder.query(`BEGIN; SELECT FROM ${schema}.tasks WHERE id = '${ref.id}' FOR UPDATE`);
  const failure = catchFailure(store.cancel(ref));
  const kill =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%cancel_many%' AND wait_event_type = 'Lock'";
  await expect.poll(() => ask(kill), SOON).toHaveLength(1);
  expect(await failure).toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  await holder.end();
  expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
});

test('an operation that takes too long is ended by the database, and nothing was changed', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema, statementTimeoutMs: 200 });
  const { ref } = await createRunning(store);
  const holder = new pg.Client(server.url);
  await holder.connect();
  await holder.query(`BEGIN; SELECT FROM ${schema}.tasks WHERE id = '${ref.id}' FOR UPDATE`);
  await expect(store.cancel(ref)).rejects.toMatchObject({ code: 'STORE_BUSY' });
  await holder.end();
  expect(await store.get(ref)).toMatchObject({ status: 'running' });
});

test('an unreachable database is reported, for every kind of question', async () => {
  await using store = createPostgresStore({ url: 'postgres://127.0.0.1:1/none', connectTimeoutMs: 500 });
  const expected = { code: 'STORE_BUSY', message: expect.stringContaining('check that it runs') as string };
  await expect(createTask(store)).rejects.toMatchObject(expected);
  await expect(store.list({ tenant: 'acme' })).rejects.toMatchObject(expected);
  await expect(store.watch({}, () => {})).rejects.toMatchObject(expected);
});

test('a connection that listens and has gone silent is noticed: it is replaced and everything looked at', async () => {
  const { hostname, port } = new URL(server.url);
  await using network = await startProxy({ host: hostname, port: Number(port) });
  const schema = newSchema();
  await using direct = createPostgresStore({ url: server.url, schema });
  const { ref } = await createRunning(direct);
  const url = server.url.replace(port, `${network.port}`);
  await using store = createPostgresStore({ url, schema, pollIntervalMs: 100, statementTimeoutMs: 500 });
  let resynced = (): void => {};
  await using watching = await store.watch({ worker: 'w' }, ({ type }) => type === 'resync' && resynced());
  network.freeze();
  const resync = new Promise<void>((resolve) => (resynced = resolve));
  await direct.cancel(ref);
  await resync;
  expect(await store.get(ref)).toMatchObject({ status: 'cancelling' });
  expect(watching).toBeDefined();
});

test('a closed store leaves no connection, and a frozen server does not keep it from closing', async () => {
  const schema = newSchema();
  const store = createPostgresStore({ url: server.url, schema });
  await Promise.all(Array.from({ length: 20 }, () => createTask(store)));
  await store.watch({ worker: 'w' }, () => {});
  await store[Symbol.asyncDispose]();
  const left = "SELECT count(*)::int FROM pg_stat_activity WHERE application_name LIKE 'whoa%'";
  await expect.poll(() => ask(left), SOON).toEqual([{ count: 0 }]);
  const frozen = createPostgresStore({ url: server.url, schema });
  await frozen.watch({ worker: 'w' }, () => {});
  await createTask(frozen);
  await server.pause();
  try {
    await frozen[Symbol.asyncDispose]();
  } finally {
    await server.resume();
  }
});

test('the first request without the package pg fails with what to install', () => {
  const hook =
    "import { registerHooks } from 'node:module'; registerHooks({ resolve(name, context, next) { if (name === 'pg') throw new Error('missing'); return next(name, context); } });";
  const program =
    "import { createPostgresStore } from '@whoa/tasks/internal'; try { await createPostgresStore().list({ tenant: 'acme' }); } catch (error) { console.log(error.message); }";
  const args = [
    '--conditions=@whoa/source',
    '--import',
    `data:text/javascript,${encodeURIComponent(hook)}`,
    '--input-type=module',
    '-e',
    program,
  ];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8', cwd: import.meta.dirname })).toMatch(
    /npm install pg/,
  );
});

test('each store that watches listens through one connection, which is closed with it', async () => {
  const stores = Array.from({ length: 4 }, () => createPostgresStore({ url: server.url, schema: newSchema() }));
  const heard: string[] = [];
  await Promise.all(stores.map((store, i) => store.watch({ tenant: 'acme' }, () => heard.push(`${i}`))));
  const listening = "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'whoa listens'";
  expect(await ask(listening)).toEqual([{ count: 4 }]);
  await stores[0]![Symbol.asyncDispose]();
  for (const store of stores.slice(1)) await createTask(store);
  await expect.poll(() => heard.toSorted(), SOON).toEqual(['1', '2', '3']);
  await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
  await expect.poll(() => ask(listening), SOON).toEqual([{ count: 0 }]);
});

test('changes are notified after the commit, many at the same time, and only if a client listens', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  await using listening = createPostgresStore({ url: server.url, schema });
  await store.list({ tenant: 'acme' });
  await ask(
    `CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
     CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON ${schema}.tasks DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (NEW.agent = 'refused') EXECUTE FUNCTION ${schema}.refuse()`,
  );
  await ask("ALTER SYSTEM SET track_functions = 'all'");
  await ask('SELECT pg_reload_conf()');
  const notifications = async (): Promise<number> => {
    const sql = `SELECT coalesce(sum(calls), 0)::int AS calls FROM pg_stat_user_functions WHERE schemaname = '${schema}_v3' AND funcname = 'notify_all'`;
    return Number((await ask(sql))[0]!['calls']);
  };
  const heard: Hint[] = [];
  await using watching = await listening.watch({ tenant: 'acme' }, (hint) => heard.push(hint));
  await expect(createTask(store, { agent: 'refused' })).rejects.toThrow('no');
  await createTask(store, { tenant: 'other' });
  const tasks = await Promise.all(Array.from({ length: 100 }, () => createTask(store)));
  await expect.poll(() => heard.length, SOON).toBe(tasks.length);
  expect(heard.map((hint) => ('id' in hint ? hint.id : '')).toSorted()).toEqual(tasks.map(({ id }) => id).toSorted());
  await store[Symbol.asyncDispose]();
  await expect.poll(notifications, SOON).toBeGreaterThan(0);
  expect(await notifications()).toBeLessThan(20);
  expect(watching).toBeDefined();
});
