import { Socket } from 'node:net';
import type * as Pg from 'pg';
import { StoreSetupError } from '../../../errors.ts';

/** The parts of `pg` that are used. */
export type Driver = Pick<typeof Pg, 'Client' | 'Pool'>;
export type Connection = Pg.ClientBase;
export type PooledConnection = Pg.PoolClient;
export type Pool = Pg.Pool;
export type ConnectionSettings = Pg.ClientConfig;

/** How long to wait for a server to confirm the end of a connection. */
const CLOSE_TIMEOUT_MS = 1_000;

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

/**
 * The sockets of some connections. We create them, so that we can close them too: a suspended server never responds.
 */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** Pass this to `pg` as its `stream`. */
  readonly create = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  };

  /** Lets the process exit while these are open. */
  unref(): void {
    for (const socket of this.#open) socket.unref();
  }

  /** Closes them all, without notifying the server. */
  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Waits for an end that the server has to confirm, up to a limit. */
  async endWithin(end: () => Promise<void>): Promise<void> {
    const timer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    try {
      await end();
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Returns the server process that a connection was given at its start. A pooler gives its own, so if `pg_backend_pid()`
 * differs, there is a pooler in between. `pg` has this property; its types do not.
 */
export function introducedBackend(connection: Connection): number | undefined {
  const { processID } = connection as { processID?: number | null };
  return processID ?? undefined;
}
