import { setTimeout as wait } from 'node:timers/promises';
import { type PostgresServer, type PostgresServerOptions, startPostgres } from './postgres.ts';
import type { Address } from './proxy.ts';
import { query } from './query.ts';

/** A server and a standby that has everything that was acknowledged. */
export interface PostgresPair extends AsyncDisposable {
  readonly primary: PostgresServer;
  /** Where the primary is. */
  readonly address: Address;
  /** The address of the database behind another port. */
  urlAt(address: Address): string;
  /** The primary dies; its standby is promoted and gets a new standby. */
  failOver(redirect: (to: Address) => void): Promise<void>;
}

/** The follower retries immediately when the other was away. */
const SETTINGS = { wal_retrieve_retry_interval: '100ms' };

export async function startPostgresPair(options: PostgresServerOptions = {}): Promise<PostgresPair> {
  const settings = { ...SETTINGS, ...options.settings };
  const follow = ({ url }: PostgresServer): Promise<PostgresServer> =>
    startPostgres({ ...options, settings, standbyOf: url });
  let primary = await startPostgres({ ...options, settings });
  // The standby copies it; from the reload on nothing is acknowledged that the standby does not have.
  await query(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  let standby = await follow(primary);
  await isFollowed(primary);
  await query(primary.url, 'SELECT pg_reload_conf()');
  return {
    get primary() {
      return primary;
    },
    get address() {
      return toAddress(primary);
    },
    urlAt: ({ host, port }) => primary.url.replace(/127\.0\.0\.1:\d+\//, `${host}:${port}/`),
    async failOver(redirect) {
      await isFollowed(primary);
      await primary.kill();
      await primary[Symbol.asyncDispose]();
      primary = standby;
      await query(primary.url, 'SELECT pg_promote()');
      redirect(toAddress(primary));
      standby = await follow(primary);
      await isFollowed(primary);
    },
    async [Symbol.asyncDispose]() {
      await standby[Symbol.asyncDispose]();
      await primary[Symbol.asyncDispose]();
    },
  };
}

function toAddress({ url }: PostgresServer): Address {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

async function isFollowed({ url }: PostgresServer): Promise<void> {
  const following = "SELECT FROM pg_stat_replication WHERE state = 'streaming'";
  while ((await query(url, following)).length === 0) await wait(50);
}
