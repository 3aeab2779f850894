import type { Connection } from './connection.ts';

/** Which connection leads to which shard. */
export interface Routes {
  /** The connection to the master of a slot; undefined while no node has said whose it is. */
  at(slot: number): Connection | undefined;
  /** Notes what a `MOVED` said: the master of one slot, as `host:port`. */
  move(slot: number, address: string, toldBy: Connection): void;
  /** Asks where the masters are now, at most once a second. */
  refresh(): void;
  /** The same; resolves when they have been asked. */
  refreshed(): Promise<void>;
  close(): void;
}
