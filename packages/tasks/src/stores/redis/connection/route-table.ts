import type { Connection } from './connection.ts';

/** Which connection leads to which shard. */
export interface Routes {
  /** Returns the connection to the master of a slot; undefined until a node has named it. */
  at(slot: number): Connection | undefined;
  /** Records a `MOVED` reply: the master of one slot, as `host:port`. */
  move(slot: number, address: string, toldBy: Connection): void;
  /** Reads the slot map again, at most once a second. */
  refresh(): void;
  /** Like `refresh`, and resolves when the map has been read. */
  refreshed(): Promise<void>;
  close(): void;
}
