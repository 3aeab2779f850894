import type { ConnectionOptions } from 'node:tls';
import type { World } from '@whoa/core/embed';
import type { StoreOptions } from '../../store-options.ts';
import { checkDuration, checkLimit } from '../checked/checks.ts';
import type { StoredSetting, StoreRules } from '../driver.ts';

export interface RedisStoreOptions extends StoreOptions {
  /**
   * The address: `redis://user:password@host:6379/0`, or `rediss://` for TLS. Pass several for the nodes of a Cluster
   * or for Sentinels; user, password and TLS are taken from the first.
   */
  readonly url: string | readonly string[];
  /** The addresses are nodes of a Cluster. */
  readonly cluster?: boolean;
  /**
   * The addresses are Sentinels that watch a master with this name; `password` is the Sentinels' own, if they have one.
   */
  readonly sentinel?: { readonly name: string; readonly password?: string; readonly username?: string };
  /** More TLS options: a certificate authority, a client certificate. */
  readonly tls?: ConnectionOptions;
  /** The prefix of every key. Defaults to `whoa`. */
  readonly prefix?: string;
  /** The timeout of an operation. */
  readonly timeoutMs?: number;
  /** Confirm a write only when this many replicas have it. Not supported on a Cluster. */
  readonly replicas?: { readonly atLeast: number };
  readonly world?: World;
}

export const PREFIX = 'whoa';
export const TIMEOUT_MS = 5_000;

/** The settings that the store holds. */
export const STORED: readonly StoredSetting[] = ['retentionMs', 'conversationRetentionMs'];

/** The default number of shards: one thread serves one server, so a Cluster needs several. */
const SHARDS = { alone: 1, cluster: 16 };

/** Returns the earlier and current shard counts, oldest first. */
export function getGenerations({
  shards,
  cluster,
}: Pick<RedisStoreOptions, 'shards' | 'cluster'>): readonly [number, ...number[]] {
  const given = [shards ?? SHARDS[cluster ? 'cluster' : 'alone']].flat();
  const isRising = given.every((count, i) => checkLimit('shards', count) > (given[i - 1] ?? 0));
  if (given.length === 0 || !isRising)
    throw new RangeError(`shards: expected rising numbers, got [${given.join(', ')}]`);
  return given as unknown as readonly [number, ...number[]];
}

/**
 * Returns how often workers may crash, how many tasks may run at the same time (the share of each shard; 0 for any), and the
 * shards.
 */
export function toLimits(
  { maxAttempts, maxRunningPerTenant = 0, maxRunningPerAgent = 0 }: StoreRules,
  generations: readonly number[],
): string {
  const shares = [maxRunningPerTenant, maxRunningPerAgent].map((limit) => Math.ceil(limit / generations.at(-1)!));
  return [maxAttempts, ...shares, generations.join(',')].join(' ');
}

/** Returns the key prefix of a shard. A Cluster hashes the part in braces, so a whole shard is on one node. */
export function toTag(prefix: string, shard: number): string {
  return `${prefix}:{s${shard.toString(36)}}:`;
}

/** Rejects invalid options before anything is opened. */
export function checkOptions({ prefix = PREFIX, cluster = false, replicas, timeoutMs }: RedisStoreOptions): void {
  checkPrefix(prefix);
  if (timeoutMs !== undefined) checkDuration('timeoutMs', timeoutMs);
  if (cluster && replicas !== undefined) throw new TypeError('replicas: not supported on a Cluster; leave it out');
}

/** Braces would move keys to other slots; spaces and stars would make them hard to name in an ACL. */
function checkPrefix(prefix: string): void {
  if (!/^[\w.:-]{1,64}$/.test(prefix)) {
    throw new TypeError(`prefix: expected 1 to 64 letters, digits, '_', '.', ':' or '-', got '${prefix}'`);
  }
}
