import type * as Pg from 'pg';
import { StoreSetupError } from './failures.ts';

/** The parts of `pg` that are used. */
export type Driver = Pick<typeof Pg, 'Client' | 'Pool'>;
export type Connection = Pg.ClientBase;
export type PooledConnection = Pg.PoolClient;
export type Pool = Pg.Pool;

/** A server that does not say goodbye is left after this time. */
const GOODBYE_MS = 1_000;

/** Loads `pg` when it is first needed. */
export async function loadDriver(): Promise<Driver> {
  try {
    const loaded = await import('pg');
    return loaded.default;
  } catch (error) {
    throw new StoreSetupError("The 'postgres' store needs the package 'pg'; install it: npm install pg", {
      cause: error,
    });
  }
}

/** Lets the process end while this connection is open. */
export function letGo(connection: Connection): void {
  streamOf(connection).unref();
}

/** Has the questions on a connection wait for each other: the driver no longer keeps more than one for us. */
export function takeTurns(connection: Connection): void {
  const ask = connection.query.bind(connection) as (...question: unknown[]) => Promise<unknown>;
  let last: Promise<unknown> = Promise.resolve();
  const query = (...question: unknown[]): Promise<unknown> => {
    const answer = last.then(() => ask(...question));
    last = answer.catch(() => {});
    return answer;
  };
  Object.assign(connection, { query });
}

/** Breaks a connection off at once. */
export function breakOff(connection: Connection): void {
  streamOf(connection).destroy();
}

/** Ends politely, and breaks off whatever is still there after a moment: a server that is stopped never answers. */
export async function endWithin(end: () => Promise<void>, connections: () => Iterable<Connection>): Promise<void> {
  const timer = setTimeout(() => {
    for (const connection of connections()) breakOff(connection);
  }, GOODBYE_MS);
  try {
    await end();
  } finally {
    clearTimeout(timer);
  }
}

interface Stream {
  unref(): void;
  destroy(): void;
}

function streamOf(connection: Connection): Stream {
  return (connection as unknown as { connection: { stream: Stream } }).connection.stream;
}
