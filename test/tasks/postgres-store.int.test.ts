import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createPostgresStore, type Hint, type TaskRecord, type TaskStore } from '@whoa/tasks';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TABLES } from '../../packages/tasks/src/stores/postgres/sql/tables.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/postgres-kind.ts';
import { startProxy } from '../servers/proxy.ts';

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

async function createRunning(store: TaskStore, rest: object = {}): Promise<{ tenant: string; id: string }> {
  const { tenant, id } = await createTask(store, rest);
  await store.claim(id, 'w', LEASE_MS);
  return { tenant, id };
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test('many stores that start at once make the schema once', async () => {
  const schema = newSchema();
  const stores = Array.from({ length: 8 }, () => createPostgresStore({ url: server.url, schema, connectionsMax: 2 }));
  await Promise.all(stores.flatMap((store) => [createTask(store), createTask(store)]));
  const { tasks } = await stores[0]!.list({ tenant: 'acme' });
  expect(tasks).toHaveLength(16);
  await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
  expect(await ask(`SELECT version FROM ${schema}.migrations ORDER BY 1`)).toEqual(
    [1, 2, 3, 4].map((version) => ({ version })),
  );
});

test('two schemas in one database know nothing of each other, not even by the bell', async () => {
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

test('a schema of the first version is brought up to date, with its tasks and its functions', async () => {
  const schema = newSchema();
  const first = `CREATE SCHEMA ${schema};
    CREATE TABLE ${schema}.migrations (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
    INSERT INTO ${schema}.migrations (version) VALUES (1);
    ${TABLES.replaceAll('whoa.', `${schema}.`)}
    CREATE FUNCTION ${schema}.send(a text, b text, c json, d text, e float8) RETURNS json LANGUAGE sql AS 'SELECT NULL::json';
    INSERT INTO ${schema}.tasks (id, tenant, agent, inputs, due_at, created_at) VALUES ('t0-old', 'acme', 'a', '{1}', 1, 1);
    INSERT INTO ${schema}.due (id, shard, due_at) VALUES ('t0-old', 0, 1);
    INSERT INTO ${schema}.journal (task, position, epoch, at, event) VALUES ('t0-old', 1, 1, 1, '"ñ"');
    INSERT INTO ${schema}.conversations (tenant, conversation, history, changed_at) VALUES ('acme', 'c', '["a", {"b": null}]', ${Date.now()})`;
  await ask(first);
  await using store = createPostgresStore({ url: server.url, schema });
  expect(await store.due()).toEqual(['t0-old']);
  const ref = { tenant: 'acme', id: 't0-old' };
  expect((await store.get(ref))?.journalBytes).toBe(4);
  expect(await store.conversation({ tenant: 'acme', conversation: 'c' })).toMatchObject({
    history: ['a', { b: null }],
  });
  expect(await store.send(ref, { type: 'steer', message: 'x' })).toEqual({ answer: 'accepted', number: 1 });
  expect(await store.claim('t0-old', 'w', LEASE_MS)).toMatchObject({ answer: 'claimed', task: { inputs: [1] } });
  expect(await store.finish('t0-old', 1, { status: 'success' })).toMatchObject({ answer: 'finished' });
  expect(await store.due()).toEqual([]);
});

test('a schema of a newer version is left alone', async () => {
  const schema = newSchema();
  {
    await using store = createPostgresStore({ url: server.url, schema });
    await store.due();
  }
  await ask(`INSERT INTO ${schema}.migrations (version) VALUES (99)`);
  await using store = createPostgresStore({ url: server.url, schema });
  await expect(store.due()).rejects.toThrow(/newer version.*update Whoa/);
});

test('a schema that is no name is refused at once', () => {
  for (const schema of ['', 'a"b', 'Upper', 'a b', 'x'.repeat(64)]) {
    expect(() => createPostgresStore({ schema })).toThrow(/^schema:/);
  }
});

test('names that Postgres would change are refused by name', async () => {
  await using store = createPostgresStore({ url: server.url });
  await expect(createTask(store, { tenant: 'a\0b' })).rejects.toThrow(/^tenant:/);
  await expect(createTask(store, { conversation: '\ud800' })).rejects.toThrow(/^conversation:/);
  await expect(createTask(store, { worker: 'w\0' })).rejects.toThrow(/^worker:/);
  await expect(createTask(store, { tenant: '漢'.repeat(500), conversation: '漢'.repeat(500) })).rejects.toThrow(/2400/);
});

test('what people say comes back exactly: nulls, the order of keys, halves of characters', async () => {
  await using store = createPostgresStore({ url: server.url });
  const said = { z: null, a: [1e300, 0.1, -5], text: '\0 \ud800 \u2028 ñ 🙂', nested: { '': '\\u0000' } };
  const { tenant, id } = await createRunning(store, { input: said, conversation: 'exact' });
  await store.append(id, 1, { after: 0, events: [said, null, '\0'] });
  await store.send({ tenant, id }, { type: 'steer', message: said });
  await store.cancel({ tenant, id }, { message: '\0 why', by: 'ann', kind: 'odd\0' });
  const before = (await store.get({ tenant, id }))!;
  expect(JSON.stringify(before.inputs[0])).toBe(JSON.stringify(said));
  expect(before.commands).toEqual([{ type: 'steer', message: said, number: 1 }]);
  expect(before.stop?.reason).toMatchObject({ message: '\0 why', by: 'ann', kind: 'odd\0' });
  await store.finish(id, 1, { status: 'success', result: said, answer: '\0', history: [said] });
  const { outcome } = (await store.get({ tenant, id }))!;
  expect(JSON.stringify(outcome?.result)).toBe(JSON.stringify(said));
  expect((await store.read({ tenant, id })).map(({ event }) => event)).toEqual([said, null, '\0']);
  expect((await store.conversation({ tenant, conversation: 'exact' }))?.history).toEqual([said]);
});

test('a hint too long for a notification makes watchers look at everything', async () => {
  await using store = createPostgresStore({ url: server.url, schema: newSchema() });
  const heard: Hint[] = [];
  const name = '\u0001'.repeat(512);
  await using watching = await store.watch({ tenant: name }, (hint) => heard.push(hint));
  await createTask(store, { tenant: name, conversation: name, worker: name });
  await expect.poll(() => heard, SOON).toEqual([{ type: 'resync' }]);
  expect(watching).toBeDefined();
});

test('anybody can ring the bell, but an order comes from the table and from nowhere else', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  const { id } = await createRunning(store);
  const other = await createRunning(store);
  const heard: Hint[] = [];
  await using watching = await store.watch({ worker: 'w' }, (hint) => heard.push(hint));
  await ask('CREATE ROLE stranger LOGIN');
  const channel = `whoa_${createHash('sha256').update(`"${schema}"./w`).digest('hex').slice(0, 40)}`;
  const url = server.url.replace('postgres@', 'stranger@');
  await expect(query(url, `SELECT * FROM ${schema}.tasks`)).rejects.toThrow(/permission denied/);
  const ring = (id: string, tenant: string, ...more: unknown[]): Promise<unknown> =>
    query(url, 'SELECT pg_notify($1, $2)', [channel, JSON.stringify(['cancel', id, tenant, 'w', null, ...more])]);
  await ring(id, 'acme', { epoch: 1, stop: { level: 'kill' } });
  await ring(id, 'acme');
  await store.cancel(other, { message: 'mine' }, { how: 'now' });
  await ring(other.id, 'stranger');
  await ring('\0', 'acme');
  await expect.poll(() => heard.length, SOON).toBe(5);
  const { stop } = (await store.get(other))!;
  expect(stop).toMatchObject({ level: 'abort', reason: { message: 'mine' } });
  const orders = heard.flatMap((hint) =>
    'order' in hint ? [{ ...hint.order, id: hint.id, tenant: hint.tenant }] : [],
  );
  expect(orders).toEqual([{ epoch: 1, stop, ...other }]);
  expect(watching).toBeDefined();
});

test('a burst of cancels brings every order along', async () => {
  await using store = createPostgresStore({ url: server.url, schema: newSchema() });
  const tasks = await Promise.all(Array.from({ length: 400 }, () => createRunning(store)));
  const orders = new Map<string, unknown>();
  await using watching = await store.watch(
    { worker: 'w' },
    (hint) => 'order' in hint && orders.set(hint.id, hint.order),
  );
  await Promise.all(tasks.map((ref) => store.cancel(ref, { message: ref.id })));
  await expect.poll(() => orders.size, SOON).toBe(400);
  for (const { id } of tasks) expect(orders.get(id)).toMatchObject({ epoch: 1, stop: { reason: { message: id } } });
  expect(watching).toBeDefined();
});

test('no operation reads a whole table', async () => {
  const schema = newSchema();
  const options = { url: server.url, schema, retentionMs: 1_000_000 };
  const scans = (): Promise<Record<string, unknown>[]> =>
    ask('SELECT relname, seq_scan::int FROM pg_stat_user_tables WHERE schemaname = $1 AND relname <> $2 ORDER BY 1', [
      schema,
      'migrations',
    ]);
  {
    await using store = createPostgresStore(options);
    const fill = async (i: number): Promise<void> => {
      const { id } = await createRunning(store, { conversation: `c${i}` });
      await store.append(id, 1, { after: 0, events: [i] });
      if (i % 2 === 0) await store.finish(id, 1, { status: 'success' });
    };
    for (let i = 0; i < 600; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => fill(i + j)));
  }
  await ask(
    `ANALYZE ${['tasks', 'due', 'journal', 'conversations', 'commands'].map((t) => `${schema}.${t}`).join(', ')}`,
  );
  const before = await scans();
  {
    await using store = createPostgresStore(options);
    const ref = await createRunning(store, { conversation: 'last' });
    await createTask(store, { conversation: 'last' });
    await createTask(store, { conversation: 'last', holdMs: 1 });
    await store.renew(ref.id, 1, LEASE_MS);
    await store.append(ref.id, 1, { after: 0, events: ['x'], done: [1] });
    await store.send(ref, { type: 'steer', message: 'x' });
    await store.cancel(ref);
    await store.get(ref);
    await store.list({ tenant: 'acme', limit: 5 });
    await store.list({ tenant: 'acme', limit: 5, status: 'running', conversation: 'c1' });
    await store.read(ref, { watchMs: 1_000 });
    await store.due({ limit: 5 });
    await store.due({ limit: 5, shard: 0 });
    await store.conversation({ tenant: 'acme', conversation: 'last' });
    await store.finish(ref.id, 1, { status: 'success', history: [] });
    await store.cancel({ tenant: 'acme', conversation: 'last' });
  }
  // Connections hand their figures in when they end.
  await expect
    .poll(() => ask("SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'whoa'"), SOON)
    .toEqual([{ count: 0 }]);
  expect(await scans()).toEqual(before);
});

test('an answer that was lost is an unknown outcome, and asking again is safe', async () => {
  const { hostname, port } = new URL(server.url);
  await using proxy = await startProxy({ host: hostname, port: Number(port) });
  const schema = newSchema();
  await using direct = createPostgresStore({ url: server.url, schema });
  await using store = createPostgresStore({ url: server.url.replace(port, `${proxy.port}`), schema });
  const { id } = await createRunning(store);
  proxy.swallowAnswers();
  const failure = failureOf(store.finish(id, 1, { status: 'success', answer: 'done' }));
  await proxy.swallowed;
  proxy.cut();
  expect(await failure).toMatchObject({ code: 'UNKNOWN_OUTCOME', operation: 'finish' });
  expect(await direct.get({ tenant: 'acme', id })).toMatchObject({ status: 'success', outcome: { answer: 'done' } });
  expect(await store.finish(id, 1, { status: 'success', answer: 'done' })).toEqual({
    answer: 'already',
    status: 'success',
  });
});

test('a connection that the server ends while it works is an unknown outcome', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema });
  const ref = await createRunning(store);
  const holder = new pg.Client(server.url);
  await holder.connect();
  await holder.query(`BEGIN; SELECT FROM ${schema}.tasks WHERE id = '${ref.id}' FOR UPDATE`);
  const failure = failureOf(store.cancel(ref));
  const kill =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%cancel_task%' AND wait_event_type = 'Lock'";
  await expect.poll(() => ask(kill), SOON).toHaveLength(1);
  expect(await failure).toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  await holder.end();
  expect(await store.cancel(ref)).toMatchObject({ answer: 'accepted' });
});

test('an operation that takes too long is ended by the database, and nothing was changed', async () => {
  const schema = newSchema();
  await using store = createPostgresStore({ url: server.url, schema, statementTimeoutMs: 200 });
  const ref = await createRunning(store);
  const holder = new pg.Client(server.url);
  await holder.connect();
  await holder.query(`BEGIN; SELECT FROM ${schema}.tasks WHERE id = '${ref.id}' FOR UPDATE`);
  await expect(store.cancel(ref)).rejects.toMatchObject({ code: 'STORE_BUSY' });
  await holder.end();
  expect(await store.get(ref)).toMatchObject({ status: 'running' });
});

test('a database that cannot be reached is said so, for every kind of question', async () => {
  await using store = createPostgresStore({ url: 'postgres://127.0.0.1:1/none', connectTimeoutMs: 500 });
  const expected = { code: 'STORE_BUSY', message: expect.stringContaining('is it running') as string };
  await expect(createTask(store)).rejects.toMatchObject(expected);
  await expect(store.due()).rejects.toMatchObject(expected);
  await expect(store.watch({}, () => {})).rejects.toMatchObject(expected);
});

test('a bell that has gone silent is noticed: the connection is replaced and everything looked at', async () => {
  const { hostname, port } = new URL(server.url);
  await using proxy = await startProxy({ host: hostname, port: Number(port) });
  const schema = newSchema();
  await using direct = createPostgresStore({ url: server.url, schema });
  const ref = await createRunning(direct);
  await using store = createPostgresStore({
    url: server.url.replace(port, `${proxy.port}`),
    schema,
    pollMs: 50,
    statementTimeoutMs: 500,
  });
  let resynced = (): void => {};
  const resync = new Promise<void>((resolve) => (resynced = resolve));
  await using watching = await store.watch({ worker: 'w' }, ({ type }) => type === 'resync' && resynced());
  proxy.swallowAnswers();
  await direct.cancel(ref);
  await proxy.swallowed;
  const giveBack = setTimeout(() => proxy.cut(), 200);
  await resync;
  clearTimeout(giveBack);
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

test('without the package pg the first question says what to install', () => {
  const hook =
    "import { registerHooks } from 'node:module'; registerHooks({ resolve(name, context, next) { if (name === 'pg') throw new Error('missing'); return next(name, context); } });";
  const program =
    "import { createPostgresStore } from '@whoa/tasks'; try { await createPostgresStore().due(); } catch (error) { console.log(error.message); }";
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
