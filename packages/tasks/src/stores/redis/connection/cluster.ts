import { setTimeout as wait } from 'node:timers/promises';
import { type RedisStoreOptions, TIMEOUT_MS } from '../options.ts';
import { parseAddresses } from './addresses.ts';
import type { Connection, Reply, Routes } from './connection.ts';

/** The slot map of a Cluster is read at most this often, and only after a failure. */
const REFRESH_MS = 1_000;
/** A node that does not return the slot map within this time is skipped. */
const ASK_MS = 1_000;

type Connect = (address: { host: string; port: number }) => Connection;

/**
 * Routes to the masters of a Cluster, with one connection to each that is needed. It never connects to replicas. The
 * slot map is read from the first node that responds, corrected by every `MOVED`, and read again when a node is
 * unreachable.
 */
export class ClusterRoutes implements Routes {
  readonly #options: RedisStoreOptions;
  readonly #connect: Connect;
  readonly #connections = new Map<string, Connection>();
  readonly #masters: (string | undefined)[] = [];
  #refreshing: Promise<void> | undefined;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #turn = 0;
  #closed = false;

  constructor(options: RedisStoreOptions, connect: Connect) {
    this.#options = options;
    this.#connect = connect;
  }

  at(slot: number): Connection | undefined {
    const address = this.#masters[slot];
    return address === undefined || this.#closed ? undefined : this.#connectionTo(address);
  }

  move(slot: number, address: string, toldBy: Connection): void {
    this.#masters[slot] = this.#whole(address, toldBy);
  }

  refresh(): void {
    this.#refreshing ??= this.#refreshLater().finally(() => (this.#refreshing = undefined));
  }

  async refreshed(): Promise<void> {
    this.refresh();
    await this.#refreshing;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }

  async #refreshLater(): Promise<void> {
    const soonest = this.#refreshedAt + REFRESH_MS - performance.now();
    if (soonest > 0) await wait(soonest, undefined, { ref: false });
    if (this.#closed) return;
    this.#refreshedAt = performance.now();
    for (const connection of this.#candidates()) {
      const map = await askForSlots(connection);
      if (this.#closed) return;
      if (map === undefined) continue;
      this.#adopt(map, connection);
      return;
    }
  }

  /**
   * Returns the nodes to ask: connected ones, starting with another each time in case one is cut off; then configured
   * ones.
   */
  *#candidates(): Iterable<Connection> {
    const ready = [...this.#connections.values()].filter(({ isReady }) => isReady);
    const first = ready.length === 0 ? 0 : this.#turn++ % ready.length;
    yield* ready.slice(first);
    yield* ready.slice(0, first);
    for (const { host, port } of parseAddresses(this.#options)) yield this.#connectionTo(`${host}:${port}`);
  }

  #adopt(map: readonly Range[], toldBy: Connection): void {
    this.#masters.length = 0;
    for (const [from, to, [host, port]] of map) {
      const address = this.#whole(`${host ?? ''}:${port}`, toldBy);
      for (let slot = from; slot <= to; slot++) this.#masters[slot] = address;
    }
    const masters = new Set(this.#masters);
    for (const [address, connection] of this.#connections) {
      if (masters.has(address)) continue;
      this.#connections.delete(address);
      connection.retire(this.#options.timeoutMs ?? TIMEOUT_MS);
    }
  }

  /** A node that does not know its own address returns none. Then use the address that we asked. */
  #whole(address: string, toldBy: Connection): string {
    if (!address.startsWith(':') && !address.startsWith('?:')) return address;
    const own = [...this.#connections].find(([, connection]) => connection === toldBy)?.[0] ?? address;
    return own.slice(0, own.lastIndexOf(':')) + address.slice(address.lastIndexOf(':'));
  }

  #connectionTo(address: string): Connection {
    const known = this.#connections.get(address);
    if (known !== undefined) return known;
    const colon = address.lastIndexOf(':');
    const made = this.#connect({ host: address.slice(0, colon), port: Number(address.slice(colon + 1)) });
    this.#connections.set(address, made);
    return made;
  }
}

/** First slot, last slot, and the master, which comes first among the nodes. */
type Range = readonly [from: number, to: number, master: readonly [host: string | null, port: number]];

async function askForSlots(connection: Connection): Promise<readonly Range[] | undefined> {
  if (!(await connection.waitForReady(ASK_MS))) return undefined;
  const sent = await connection.send((client) => client.call('CLUSTER', 'SLOTS'), ASK_MS);
  const map = 'reply' in sent ? (sent.reply as Reply[]) : [];
  return map.length === 0 ? undefined : (map as unknown as Range[]);
}
