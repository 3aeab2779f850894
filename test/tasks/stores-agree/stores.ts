import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import { createPostgresStore, createSqliteStore } from '@whoa/tasks/internal';
import type { Hint, StoreOptions } from '@whoa/tasks/store';
import pg from 'pg';
import { TENANTS, WORKERS } from './made.ts';
import { findPostgresProblems, findSqliteProblems, type Query } from './rows.ts';
import type { SharedTime } from './time.ts';
import { Waiters } from './wakeups.ts';

/** In memory where possible: this data need not survive a power cut. */
const FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
/** A busy machine may take this long for one request. */
const BUSY_MS = 60_000;

/** One of the stores that must agree. */
export interface Contestant extends AsyncDisposable {
  readonly name: string;
  readonly store: TaskStore;
  readonly heard: Heard;
  readonly waiters: Waiters;
  /** Makes the store's clock show the shared time. */
  setTime(): Promise<unknown>;
  /** Waits until the hints of all requests have arrived, except those of the last one. */
  settle(): Promise<void>;
  /** Finds contradictions in the stored data. */
  findProblems(): Promise<readonly string[]>;
  /** Removes everything, so that the next history finds an empty store. */
  empty(): Promise<void>;
}

export interface ContestantOptions {
  readonly rules: StoreOptions;
  readonly time: SharedTime;
  /** Separates the data of stores on the same server. */
  readonly name: string;
}

/** Hints that arrived since the last comparison. */
interface Heard {
  /** Each hint with its receiver, as text. */
  readonly changes: string[];
  /** Workers that were notified of new work. */
  readonly rung: string[];
}

/** Hints about what a worker did itself. The store may or may not send them to it. */
const OWN = new Set(['status', 'journal']);

/** Subscribes to everything about the tenants and the workers of a history. */
async function listen(store: TaskStore, toText: (hint: Hint) => string): Promise<Heard> {
  const heard: Heard = { changes: [], rung: [] };
  for (const tenant of TENANTS) {
    await store.watch({ tenant }, (hint) => void heard.changes.push(`${tenant} hears ${toText(hint)}`));
  }
  for (const worker of WORKERS) {
    await store.watch({ worker }, (hint) => {
      if (hint.type === 'ready') heard.rung.push(hint.worker);
      else if (!OWN.has(hint.type)) heard.changes.push(`${worker} hears ${toText(hint)}`);
    });
  }
  return heard;
}

export async function openMemory(
  { rules, time }: ContestantOptions,
  toText: (hint: Hint) => string,
): Promise<Contestant> {
  let store = createMemoryStore({ ...rules, world: time.world });
  let heard = await listen(store, toText);
  return {
    name: 'memory',
    get store() {
      return store;
    },
    get heard() {
      return heard;
    },
    waiters: new Waiters(),
    setTime: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    findProblems: () => Promise.resolve([]),
    async empty() {
      await store[Symbol.asyncDispose]();
      store = createMemoryStore({ ...rules, world: time.world });
      heard = await listen(store, toText);
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

const SQLITE_TABLES = [
  'tasks',
  'ready_queues',
  'worker_sessions',
  'waiters',
  'paused',
  'inputs',
  'journal',
  'command_nonces',
  'questions',
  'conversations',
  'history',
];

export async function openSqlite(
  { rules, time }: ContestantOptions,
  toText: (hint: Hint) => string,
): Promise<Contestant> {
  const folder = mkdtempSync(join(FOLDER, 'whoa-agree-'));
  const file = join(folder, 'tasks.db');
  const store = createSqliteStore({ ...rules, file, world: time.heldWorld });
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const database = new DatabaseSync(file, { timeout: BUSY_MS });
  const prepared = new Map<string, ReturnType<typeof database.prepare>>();
  const query: Query = (sql) => {
    const statement = prepared.get(sql) ?? database.prepare(sql);
    prepared.set(sql, statement);
    return Promise.resolve(statement.all());
  };
  const emptied = SQLITE_TABLES.map((table) => `DELETE FROM ${table};`).join('');
  return {
    name: 'sqlite',
    store,
    heard: await listen(store, toText),
    waiters: new Waiters(),
    setTime: () => Promise.resolve(),
    settle: () => Promise.resolve(time.runTimers()),
    findProblems: () => findSqliteProblems(query),
    empty: () =>
      Promise.resolve(database.exec(`BEGIN; ${emptied} UPDATE store_state SET tick = 0, state = ''; COMMIT`)),
    async [Symbol.asyncDispose]() {
      database.close();
      await store[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Tables for the schema and subscriptions, not for tasks. */
const POSTGRES_KEPT = ['layout', 'settings', 'functions', 'inboxes', 'interests', 'store_state'];
/** Deleted rows make the tables grow until they are vacuumed. */
const HISTORIES_PER_VACUUM = 100;

export async function openPostgres(
  { rules, time, name, url }: ContestantOptions & { readonly url: string },
  toText: (hint: Hint) => string,
): Promise<Contestant> {
  const schema = `agree_${name}`;
  const options = { ...rules, url, schema, world: time.world, maxConnections: 3, statementTimeoutMs: BUSY_MS };
  const store = createPostgresStore(options);
  await store.list({ tenant: 'acme' });
  const client = new pg.Client(url);
  await client.connect();
  // The server reads its time from a file: then no request is needed to set it.
  const folder = mkdtempSync(join(FOLDER, 'whoa-agree-'));
  chmodSync(folder, 0o755);
  const clock = join(folder, 'clock');
  writeFileSync(clock, '0');
  await client.query(
    `CREATE OR REPLACE FUNCTION ${schema}_v3.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT pg_read_file(''${clock}'')::float8'`,
  );
  // A name, so that it is planned once.
  const query: Query = async (sql) => {
    const text = sql.replaceAll('whoa.', `${schema}.`);
    const name = createHash('sha1').update(text).digest('hex');
    return (await client.query<Readonly<Record<string, unknown>>>({ name, text })).rows;
  };
  const all = await query(`SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = '${schema}'`);
  const tables = all.map((row) => String(row['name'])).filter((table) => !POSTGRES_KEPT.includes(table));
  const state = `UPDATE ${schema}.store_state SET last_contact_at = -1, grace_until = 0, grace_granted = false, sweep_requested_at = 0;`;
  const emptied = `${state} ${tables.map((table) => `DELETE FROM ${schema}.${table};`).join('')}`;
  let histories = 0;
  return {
    name: 'postgres',
    store,
    heard: await listen(store, toText),
    setTime: () => Promise.resolve(writeFileSync(clock, `${time.now}`)),
    waiters: new Waiters(),
    // A store reports its own changes before it returns.
    settle: () => Promise.resolve(),
    findProblems: () => findPostgresProblems(query),
    async empty() {
      await client.query(emptied);
      if (++histories % HISTORIES_PER_VACUUM > 0) return;
      await client.query(`VACUUM ${[...tables, 'store_state'].map((table) => `${schema}.${table}`).join(', ')}`);
    },
    async [Symbol.asyncDispose]() {
      await client.end();
      await store[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
